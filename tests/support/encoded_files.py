"""Files in other encodings than UTF-8."""

#: What is said of a line that is not UTF-8, as the rest of a sentence.
NOT_UTF8 = "not UTF-8: save the file as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
