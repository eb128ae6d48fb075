package org.langshift.opensearch;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.text.Normalizer;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.json.JsonXContent;

/** Language tags and the form of texts, by the tables that Python made of CLDR: languages.py and normal_form.py. */
final class Languages {

    static final String UND = "und";
    private static final Map<String, Object> TABLES = read();
    private static final Map<String, Object> TAGS = table(TABLES, "tags"), FOLDS = table(TABLES, "folds");
    private static final Set<Object> VARIANTS = new HashSet<>((List<?>) TAGS.get("variants"));

    private Languages() {}

    static String primary(String tag) {
        int dash = tag.indexOf('-');
        return dash < 0 ? tag : tag.substring(0, dash);
    }

    /** What the field of the language holds for a canonical tag: `no` for `nn`. */
    static String fold(String tag) {
        return text(FOLDS, primary(tag), primary(tag));
    }

    /** What ISO 639-3 counts a language to: `ar` for `arz`; null where it is of no other. */
    static String macrolanguage(String tag) {
        return text(TABLES, "macrolanguages", primary(tag), null);
    }

    /** The script that a canonical tag names or implies; null where that is not known. */
    static String script(String tag) {
        for (String part : tag.split("-")) {
            if (part.length() == 4) {
                return part;
            }
        }
        return text(TAGS, "usual", tag.toLowerCase(Locale.ROOT), text(TAGS, "usual", primary(tag), null));
    }

    /** A text in NFC, without invisible characters within words, and with Latin ligatures spelt out. */
    static String normalForm(String text) {
        if (text.chars().allMatch(one -> one < 128)) {
            return text;
        }
        String made = text;
        for (Map.Entry<String, Object> one : table(TABLES, "spellings").entrySet()) {
            for (char character : ((String) one.getValue()).toCharArray()) {
                made = made.replace(String.valueOf(character), one.getKey());
            }
        }
        return Normalizer.normalize(made, Normalizer.Form.NFC);
    }

    /** The canonical tag of what a document or a person calls a language, `und` where that is none; a list of one is that one. */
    static String canonical(Object told) {
        Object one = told instanceof List<?> list && list.size() == 1 ? list.get(0) : told;
        return one instanceof String text ? new Tag().canonical(text.trim().replace('_', '-')) : UND;
    }

    /** The parts of a tag, while they are read. */
    private static final class Tag {
        String language, script = "", territory = "";
        // Kinds of parts in their order: script, territory, variants, extensions.
        int least = 1;

        String canonical(String text) {
            // Letters beyond ASCII may become some of it in lower case.
            if (!text.matches("[A-Za-z0-9-]*")) {
                return UND;
            }
            String low = text.toLowerCase(Locale.ROOT);
            String[] parts = low.split("-", -1);
            String base = text(TAGS, "codes", low, null);
            int next = parts.length;
            if (base == null) {
                next = 1;
                base = language(parts[0]);
                if (parts.length > 1 && parts[1].matches("[a-z]{3}")) {
                    next = 2;
                    base = extended(base, parts[1]);
                }
            }
            if (base.equals(UND)) {
                return UND;
            }
            String[] known = base.split("-");
            language = known[0];
            for (int i = 1; i < known.length; i++) {
                if (known[i].length() == 4) {
                    script = known[i];
                } else if (territory.isEmpty()) {
                    territory = known[i];
                }
            }
            return readRest(parts, next) ? shortened() : UND;
        }

        private static String language(String head) {
            String known = text(TAGS, "codes", head, null);
            if (known != null) {
                return known;
            }
            int last = head.length() - 1;
            return last < 1 || text(TAGS, "languages", head.substring(0, last), "").indexOf(head.charAt(last)) < 0 ? UND : head;
        }

        /** A part of a language as it was once written, or a region of three letters. */
        private String extended(String base, String part) {
            String whole = text(TAGS, "codes", primary(base) + "-" + part, null), region = text(TAGS, "regions", part, null);
            if (base.equals(UND) || whole == null && region == null) {
                return UND;
            }
            if (whole == null) {
                territory = region;
                least = 3;
                return base;
            }
            least = whole.indexOf('-') < 0 ? 1 : 2;
            return whole;
        }

        private boolean readRest(String[] parts, int next) {
            Set<String> seen = new HashSet<>();
            for (int i = next; i < parts.length; i++) {
                String part = parts[i];
                if (part.isEmpty() || part.length() > 8) {
                    return false;
                }
                if (part.length() == 1) {
                    boolean mine = part.equals("x");
                    if (i + 1 == parts.length || !mine && parts[i + 1].length() == 1 || !seen.add(part)) {
                        return false;
                    }
                    // Whatever follows is its own; after x to the end.
                    while (i + 1 < parts.length && (mine || parts[i + 1].length() != 1)) {
                        i++;
                        if (parts[i].isEmpty() || parts[i].length() > 8) {
                            return false;
                        }
                    }
                    least = 4;
                } else if (!readPart(part, seen)) {
                    return false;
                }
            }
            return true;
        }

        private boolean readPart(String part, Set<String> seen) {
            int kind = part.matches("[a-z]{2}|[0-9]{3}") ? 2
                : part.matches("[a-z]{4}") ? 1
                : part.matches("[a-z0-9]{5,8}|[0-9][a-z0-9]{3}") ? 3
                : 0;
            if (kind < least) {
                return false;
            }
            least = Math.min(kind + 1, 3);
            if (kind == 1) {
                script = text(TAGS, "scripts", part, "");
                return !script.isEmpty();
            }
            if (kind == 2) {
                territory = text(TAGS, "regions", part, "");
                return !territory.isEmpty();
            }
            return VARIANTS.contains(part) && seen.add(part);
        }

        /** Without a script that goes without saying; one that stands for a region gives way to that. */
        private String shortened() {
            String without = territory.isEmpty() ? language : language + "-" + territory;
            String implied = text(TAGS, "usual", without.toLowerCase(Locale.ROOT), text(TAGS, "usual", language, null));
            if (script.isEmpty() || implied == null || script.equals(implied)) {
                return without;
            }
            String written = language + "-" + script;
            String region = territory.isEmpty() ? text(TAGS, "of_scripts", written.toLowerCase(Locale.ROOT), null) : null;
            return region != null ? language + "-" + region : territory.isEmpty() ? written : written + "-" + territory;
        }
    }

    private static String text(Map<String, Object> within, String table, String key, String otherwise) {
        return text(table(within, table), key, otherwise);
    }

    private static String text(Map<String, Object> table, String key, String otherwise) {
        Object found = table.get(key);
        return found == null ? otherwise : (String) found;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> table(Map<String, Object> within, String name) {
        return (Map<String, Object>) within.get(name);
    }

    private static Map<String, Object> read() {
        try (InputStream in = Languages.class.getResourceAsStream("languages.json")) {
            return XContentHelper.convertToMap(JsonXContent.jsonXContent, in, true);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
