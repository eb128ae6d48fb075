package org.langshift.opensearch;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.text.Normalizer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.json.JsonXContent;

/** Language tags and the form of texts, by the tables that Python made of CLDR: languages.py and normal_form.py. */
final class Languages {

    static final String UND = "und";
    private static final Map<String, Object> TABLES = read("languages.json");
    private static final Map<String, Object> TAGS = IndexFacts.map(TABLES.get("tags"));
    private static final Set<Object> VARIANTS = new HashSet<>((List<?>) TAGS.get("variants"));

    private Languages() {}

    static String primary(String tag) {
        return tag.split("-", 2)[0];
    }

    /** What the field of the language holds for a canonical tag: `no` for `nn`. */
    static String fold(String tag) {
        return text(TABLES, "folds", primary(tag), primary(tag));
    }

    /** What ISO 639-3 counts a language to: `ar` for `arz`; null where it is of no other. */
    static String macrolanguage(String tag) {
        return text(TABLES, "macrolanguages", primary(tag), null);
    }

    /** The script that a canonical tag names or implies; null where that is not known. */
    static String script(String tag) {
        Optional<String> named = Arrays.stream(tag.split("-")).filter(part -> part.length() == 4).findFirst();
        return named.orElseGet(() -> text(TAGS, "usual", tag.toLowerCase(Locale.ROOT), text(TAGS, "usual", primary(tag), null)));
    }

    /** A text in NFC, without invisible characters within words, and with Latin ligatures spelt out. */
    static String normalForm(String text) {
        if (text.chars().allMatch(one -> one < 128)) {
            return text;
        }
        String made = text;
        for (Map.Entry<String, Object> one : IndexFacts.map(TABLES.get("spellings")).entrySet()) {
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
            boolean mine = false;
            for (int i = next; i < parts.length; i++) {
                String part = parts[i];
                if (part.isEmpty() || part.length() > 8) {
                    return false;
                }
                if (part.length() == 1 && !mine) {
                    // Whatever follows is its own; after x to the end.
                    mine = part.equals("x");
                    if (i + 1 == parts.length || !mine && parts[i + 1].length() == 1 || !seen.add(part)) {
                        return false;
                    }
                    least = 4;
                } else if (least < 4 && !readPart(part, seen)) {
                    return false;
                }
            }
            return true;
        }

        private boolean readPart(String part, Set<String> seen) {
            String asScript = text(TAGS, "scripts", part, null);
            // A region of three letters stands beside the language alone.
            String asRegion = part.matches("[a-z]{2}|[0-9]{3}") ? text(TAGS, "regions", part, null) : null;
            int kind = asScript != null ? 1 : asRegion != null ? 2 : 3;
            if (kind < least || kind == 3 && !(VARIANTS.contains(part) && seen.add(part))) {
                return false;
            }
            script = kind == 1 ? asScript : script;
            territory = kind == 2 ? asRegion : territory;
            least = Math.min(kind + 1, 3);
            return true;
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
        return IndexFacts.text(IndexFacts.map(within.get(table)), key, otherwise);
    }

    /** A table that came with the plugin. */
    static Map<String, Object> read(String name) {
        try (InputStream in = Languages.class.getResourceAsStream(name)) {
            return XContentHelper.convertToMap(JsonXContent.jsonXContent, in, true);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
