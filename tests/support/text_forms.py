"""Texts as they come: in capitals, in other forms of letters, with what nobody sees, as a page or after an address."""

import unicodedata

ADDRESS = "https://www.example.org/articles/2024/05/the-harbour-at-night?utm_source=newsletter&utm_medium=email "


def styled(text):
    """ASCII letters in mathematical bold."""
    bold = {ord(letter): 0x1D400 + number for number, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
    return text.translate(bold | {letter + 32: there + 26 for letter, there in bold.items()})


def full_width(text):
    return text.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})


def decomposed(text):
    return unicodedata.normalize("NFD", text)


FORMS = {
    "as they are": str,
    "in capitals": str.upper,
    "in capitals, as Turkish has them": lambda text: text.replace("i", "İ").upper() if "ı" in text else text.upper(),
    "in title case": str.title,
    "in NFD": decomposed,
    "in capitals and NFD": lambda text: decomposed(text.upper()),
    "full-width": full_width,
    "mathematical bold": styled,
    "with soft hyphens": "\u00ad".join,
    "with zero-width spaces": "\u200b".join,
    "with zero-width joiners": "\u200d".join,
    "with RTL marks": lambda text: f"\u200f{text}".replace(" ", " \u200f"),
    "in HTML": lambda text: f'<p class="lead">{text.replace(". ", ".</p><p>")}<br/>&nbsp;</p>',
    "in escaped HTML": lambda text: f"&lt;p class=&quot;lead&quot;&gt;{text}&lt;/p&gt;",
    "after a URL": lambda text: ADDRESS + text,
}
