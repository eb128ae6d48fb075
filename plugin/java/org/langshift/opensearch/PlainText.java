package org.langshift.opensearch;

import java.text.Normalizer;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Texts as they come, for the detector: `debias/detector_text.py`, where it is explained. Lengths are in characters. */
final class PlainText {

    private static final List<String> MARKS = List.of("<", "&", "@", "://", "www.");
    private static final int MOST = 20_000, BEGINNING = 1000, PIECES = 3, PIECE = 150;
    private static final double CAPITALS = 0.11, MOSTLY = 0.4;
    // What Python takes for white space.
    private static final Pattern SPACE = Pattern.compile("(?U)[\\s\\x1c-\\x1f]+");
    private static final Pattern REFERENCE = Pattern.compile("&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\\t\\n\\f <&#;]{1,32};?)");
    private static final int LAST = 0x10FFFF, LAST_LISTED = 0xFFFF;

    private final Map<String, Pattern> patterns;
    private final Map<String, Object> entities, numbers;

    /** @param tables `tables()` of debias/detector.py */
    PlainText(Map<String, Object> tables) {
        patterns = compiled(IndexFacts.map(tables.get("patterns")));
        entities = IndexFacts.map(tables.get("entities"));
        numbers = IndexFacts.map(tables.get("numbers"));
    }

    static Map<String, Pattern> compiled(Map<String, Object> patterns) {
        return patterns.entrySet().stream().collect(Collectors.toMap(Map.Entry::getKey, one -> Pattern.compile((String) one.getValue())));
    }

    private Matcher matcher(String pattern, String text) {
        return patterns.get(pattern).matcher(text);
    }

    /** What is read of a text, on one line, without what is no language. */
    String line(String text) {
        String start = beginning(text, BEGINNING), line = piece(start);
        boolean needed = MARKS.stream().anyMatch(start::contains) || matcher("unusual", line).find();
        return Normalizer.normalize(needed ? piece(plain(text)) : line, Normalizer.Form.NFC);
    }

    private static String beginning(String text, int length) {
        boolean whole = text.length() <= length || text.codePointCount(0, text.length()) <= length;
        return whole ? text : text.substring(0, text.offsetByCodePoints(0, length));
    }

    /** The beginning of a text, or three pieces of that, evenly spread. */
    private static String piece(String text) {
        String line = onOneLine(beginning(text, BEGINNING));
        int[] characters = line.codePoints().toArray();
        int out = characters.length - PIECES * PIECE;
        if (out <= 0) {
            return line;
        }
        StringBuilder made = new StringBuilder();
        for (int number = 0; number < PIECES; number++) {
            int start = out * (number + 1) / (PIECES + 1) + number * PIECE;
            made.append(number == 0 ? "" : " ").append(new String(characters, start, PIECE));
        }
        return made.toString();
    }

    private static String onOneLine(String text) {
        String made = SPACE.matcher(text).replaceAll(" ");
        int start = made.startsWith(" ") ? 1 : 0, end = made.length() - (made.length() > start && made.endsWith(" ") ? 1 : 0);
        return made.substring(start, end);
    }

    private String plain(String text) {
        String line = beginning(text, MOST);
        if (MARKS.stream().anyMatch(line::contains)) {
            line = matcher("entity", line).replaceAll(found -> Matcher.quoteReplacement(spelt(found.group())));
            line = onOneLine(matcher("address", matcher("tag", line).replaceAll(" ")).replaceAll(" "));
        }
        return matcher("styled", matcher("format", line).replaceAll(""))
            .replaceAll(found -> Matcher.quoteReplacement(Normalizer.normalize(found.group(), Normalizer.Form.NFKC)));
    }

    /** What a character reference of HTML stands for. */
    private String spelt(String reference) {
        return REFERENCE.matcher(reference).replaceAll(found -> Matcher.quoteReplacement(character(found)));
    }

    private String character(MatchResult found) {
        String name = found.group(1);
        if (name.startsWith("#")) {
            return numbered(name.replace(";", ""));
        }
        for (int end = name.length(); end > 1; end--) {
            if (entities.get(name.substring(0, end)) instanceof String known) {
                return known + name.substring(end);
            }
        }
        return found.group();
    }

    private String numbered(String name) {
        boolean hexadecimal = name.charAt(1) == 'x' || name.charAt(1) == 'X';
        java.math.BigInteger number = new java.math.BigInteger(name.substring(hexadecimal ? 2 : 1), hexadecimal ? 16 : 10);
        int code = number.bitLength() > 21 ? LAST + 1 : number.intValue();
        if (code > LAST || code >= Character.MIN_SURROGATE && code <= Character.MAX_SURROGATE) {
            return "\ufffd";
        }
        boolean none = code > LAST_LISTED && (code & 0xFFFE) == 0xFFFE;
        return none ? "" : numbers.get(String.valueOf(code)) instanceof String known ? known : Character.toString(code);
    }

    /** A line in lower case where it is in capitals or a title; else as it is. */
    String inLowerCase(String line) {
        if (capitals(line) <= CAPITALS * length(line)) {
            return line;
        }
        if (2 * count(line, 'İ') > count(line, 'I')) {
            // In Turkish the other letter is no capital of i.
            line = line.replace('I', 'ı');
        }
        return line.replace('İ', 'i').toLowerCase(Locale.ROOT);
    }

    /** Whether most letters are capitals, so that the line as it is tells nothing. */
    boolean isInCapitals(String line) {
        return capitals(line) > MOSTLY * length(line);
    }

    private long capitals(String line) {
        return matcher("capital", line).results().count();
    }

    private static int length(String line) {
        return line.codePointCount(0, line.length());
    }

    private static long count(String line, char one) {
        return line.chars().filter(found -> found == one).count();
    }
}
