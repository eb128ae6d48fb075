package org.langshift.opensearch;

import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What becomes of a document on its way into an index, as `plugin/pipelines.py` has it: texts in normal form and in the
 * fields of their language, the document that a chunk is of, the vector shifted by the language, and the stamp.
 */
final class DocumentShift {

    // As `langshift ingest` has it.
    private static final double LEAST_CONFIDENCE = 0.5;

    private final StoredShift shift;
    private final String vector, language, confidence, stamp, told, title, parent, group;
    private final List<String> texts;
    private final boolean split, paged, unit;
    /** The languages that detection is limited to; empty for all. */
    private final Set<String> languages;

    /**
     * @param meta the whole `_meta` of the index
     * @param paged whether its mapping has pages; else any value that comes first would tell what others must be
     * @param asWritten whether a document that is updated has its vector as it was written
     */
    DocumentShift(IndexMeta meta, boolean paged, boolean asWritten) {
        this.paged = paged;
        unit = asWritten && meta.object("langshift").flag("normalised");
        IndexMeta fields = meta.object("langshift_fields");
        shift = new StoredShift(meta);
        languages = Set.copyOf(meta.object("langshift").texts("languages"));
        vector = fields.field("vector", "embedding");
        language = fields.field("language", "language");
        confidence = fields.field("confidence", "language_confidence");
        stamp = fields.field("stamp", "shift");
        told = fields.field("told", language);
        List<String> own = fields.fields("texts");
        texts = own.isEmpty() ? List.of("title", "text") : own;
        title = own.isEmpty() ? "title" : fields.text("title", null);
        split = own.isEmpty() || fields.flag("split");
        parent = fields.field("parent", null);
        group = fields.field("group", "group");
        List<String> written = Stream.of(vector, language, confidence, stamp, parent).filter(Objects::nonNull).toList();
        for (String field : written) {
            long met = Stream.concat(written.stream(), texts.stream()).filter(one -> overlap(one, field)).count();
            if (met > 1) {
                throw meta.wrong("langshift_fields", field + " and another field would be written into each other");
            }
        }
    }

    private static boolean overlap(String one, String other) {
        return (one + ".").startsWith(other + ".") || other.startsWith(one + ".");
    }

    /** Puts its texts into the form in which they are asked for. */
    void normalise(Map<String, Object> document) {
        texts.forEach(path -> Fields.normalise(document, path));
    }

    /** The vector that a document has, for `dropStamp`. */
    Object vectorOf(Map<String, Object> document) {
        return Fields.at(document, vector) instanceof List<?> list ? new ArrayList<>(list) : Fields.at(document, vector);
    }

    /** Drops the stamp of a document whose vector was made anew: it is raw, whatever the stamp says that came with it. */
    void dropStamp(Map<String, Object> document, Object before) {
        Object now = Fields.at(document, vector);
        if (now != null && !now.equals(before)) {
            Fields.put(document, stamp, null);
        }
    }

    /**
     * Does all that is to be done.
     *
     * @param document with `_id` where it has one; changed
     * @param detector null where languages are not detected
     */
    void apply(Map<String, Object> document, Detector detector) {
        normalise(document);
        nameParent(document);
        String name = document.get("_id") == null ? "The document" : "Document " + document.get("_id");
        Object value = Fields.at(document, vector), stamped = Fields.at(document, stamp);
        List<String> strings = split ? texts.stream().filter(path -> Fields.at(document, path) instanceof String).toList() : List.of();
        if (value == null && strings.isEmpty()) {
            // It may be a part of a document, for an update, or take away the stamp.
            boolean part = stamped instanceof Map<?, ?> || stamped == null && !document.containsKey(stamp);
            if (paged && part && first(document, group) != null) {
                putStamp(document, stamped == null ? new HashMap<>() : IndexFacts.map(stamped));
            }
            return;
        }
        if (value instanceof String packed) {
            value = unpacked(packed, name);
            Fields.put(document, vector, value);
        }
        // A page alone, of such a part, tells nothing of a vector.
        if (stamped == null || Set.of("page").equals(IndexFacts.map(stamped).keySet())) {
            accept(document, value, strings, detector, name);
        } else {
            refit(document, value, strings, stamped, name);
        }
    }

    /** A document that names no other is one of its own. What has neither vector nor text may be a part, for an update. */
    private void nameParent(Map<String, Object> document) {
        if (parent == null) {
            return;
        }
        Object of = Fields.at(document, parent);
        boolean named = of instanceof List<?> list ? !list.isEmpty() : of != null && !of.equals("");
        boolean whole = Fields.at(document, vector) != null || texts.stream().anyMatch(path -> Fields.at(document, path) != null);
        if (whole && !named) {
            if (document.get("_id") == null) {
                throw new IllegalArgumentException(
                    "The document has no _id and names no document in " + parent + ": give it an _id, or in " + parent
                        + " the id of the document that it is a chunk of."
                );
            }
            document.put(parent, document.get("_id"));
        }
    }

    // A document without a stamp: its vector is as the encoder made it.

    private void accept(Map<String, Object> document, Object value, List<String> strings, Detector detector, String name) {
        if (value != null) {
            requireNumbers(value, name);
        }
        Detector.Detection found = languageOf(document, detector);
        String tag = found.language(), spoken = Languages.fold(tag);
        Fields.put(document, language, spoken);
        Fields.put(document, confidence, found.confidence());
        move(document, strings, spoken);
        if (value != null) {
            restamp(document, value, null, newStamp(shift.key(tag), tag, spoken), name);
        }
    }

    /** The language that a document names, else what is detected; one that says that it is not known is left alone. */
    private Detector.Detection languageOf(Map<String, Object> document, Detector detector) {
        boolean unknown = false;
        // A client that knows nothing of the field that tells it sends the usual one, which may have been taken before.
        for (String path : List.of(told, language, "language")) {
            Object named = Fields.at(document, path);
            String tag = Languages.canonical(named);
            if (!tag.equals(Languages.UND)) {
                return new Detector.Detection(tag, 1);
            }
            unknown = unknown || named instanceof String text && text.trim().equalsIgnoreCase(Languages.UND);
        }
        if (unknown || detector == null) {
            return new Detector.Detection(Languages.UND, 0);
        }
        Detector.Detection found = detector.detect(words(document), languages);
        return found.confidence() < LEAST_CONFIDENCE ? new Detector.Detection(Languages.UND, found.confidence()) : found;
    }

    /** The texts of a document, without its title where it has others. */
    private String words(Map<String, Object> document) {
        String found = texts.stream()
            .filter(path -> !path.equals(title))
            .map(path -> words(document, path))
            .filter(words -> !words.isEmpty())
            .collect(Collectors.joining(" "));
        return found.isEmpty() && title != null ? words(document, title) : found;
    }

    private static String words(Map<String, Object> document, String path) {
        Object value = Fields.at(document, path);
        return value instanceof String text ? text : String.join(" ", IndexFacts.strings(value));
    }

    // A document with a stamp: what it was shifted by is taken back in the same step.

    private void refit(Map<String, Object> document, Object value, List<String> strings, Object stamped, String name) {
        Map<String, Object> old = IndexFacts.map(stamped);
        boolean sound = stamped instanceof Map<?, ?> && (old.get("alpha") == null || old.get("alpha") instanceof Number);
        double gamma = IndexFacts.number(old.get("gamma"), 0), alpha = IndexFacts.number(old.get("alpha"), 0);
        boolean mine = shift.hash != null && shift.hash.equals(old.get("vectors"));
        if (!sound || mine && gamma != 0 && shift.directions.length == 0) {
            throw new IllegalArgumentException(name + " has a stamp in " + stamp + " that is not langshift's: remove it.");
        }
        Map<String, Object> preferred = IndexFacts.map(old.get("own"));
        boolean foreign = !mine && (gamma != 0 || alpha != 0), weighed = IndexFacts.number(preferred.get("weight"), 0) != 0;
        if (foreign || weighed && !Objects.equals(shift.ownHash, preferred.get("vectors"))) {
            throw new IllegalArgumentException(
                name + " was shifted by the language vectors " + (foreign ? old : preferred).get("vectors") + ", and this index holds "
                    + (foreign ? shift.hash : shift.ownHash) + ": give the document its encoder's vector again, without the stamp "
                    + stamp + "."
            );
        }
        Object spoken = Fields.at(document, language);
        if (!strings.isEmpty()) {
            // An update of a text makes a string of it again.
            String tag = Languages.fold(Languages.canonical(spoken));
            if (value != null) {
                String field = strings.get(0);
                throw new IllegalArgumentException(
                    name + " has a new " + field + ", but the vector and the stamp of the one before: send " + vector + " too, with "
                        + stamp + " null; or, to keep the vector, " + field + " as {\"" + tag + "\": \"...\"}."
                );
            }
            move(document, strings, tag);
            return;
        }
        if (unit && value != null) {
            requireItsOwn(value, old, name);
        }
        String own = spoken instanceof String text ? text : Languages.UND;
        // A stamp that took nothing away may have kept the language of another.
        String known = fitting(old.get("language"), alpha != 0 ? null : spoken), named = fitting(old.get("tag"), spoken);
        String tag = !named.isEmpty() ? named : known.startsWith(own + "-") ? known : own;
        String key = mine && shift.vectors.containsKey(known) ? known : shift.key(tag);
        restamp(document, value, stamped, newStamp(key, tag, own), name);
    }

    /** Refuses a vector that is as long as the encoder makes them, and would not be without what its stamp says was done. */
    private void requireItsOwn(Object value, Map<String, Object> old, String name) {
        double[] raw = numbers(value, name), step = new double[raw.length];
        if (isUnit(raw)) {
            prefer(raw, -1, IndexFacts.map(old.get("own")), name);
            String had = String.valueOf(old.get("language"));
            add(step, IndexFacts.number(old.get("alpha"), 0), had, shift.vectors.get(had), name);
            shift.transform(raw, step, IndexFacts.number(old.get("gamma"), 0), 0);
            if (!isUnit(raw)) {
                throw new IllegalArgumentException(
                    name + " has a new vector in " + vector + ", but the stamp of the one before in " + stamp + ": send " + stamp
                        + " null with the vector."
                );
            }
        }
    }

    private static boolean isUnit(double[] vector) {
        return Math.abs(Anchors.length(vector) - 1) < 1e-3;
    }

    /**
     * What a stamp says of a language, where the document's own field does not tell of another: an update that changes
     * the language merges its stamp with the one that is there, of which more may stay than is true any more.
     */
    private static String fitting(Object tag, Object spoken) {
        return tag instanceof String text && (!(spoken instanceof String) || Languages.fold(text).equals(spoken)) ? text : "";
    }

    private Map<String, Object> newStamp(String key, String tag, String spoken) {
        Map<String, Object> made = new HashMap<>();
        made.put("vectors", shift.hash);
        made.put("alpha", key.isEmpty() ? 0.0 : shift.scale(key));
        Fields.put(made, "gamma", shift.gamma == 0 ? null : shift.gamma);
        Fields.put(made, "language", key.isEmpty() ? null : key);
        Fields.put(made, "tag", tag.equals(spoken) ? null : tag);
        if (shift.weight != 0) {
            boolean preferred = shift.preferences.containsKey(spoken);
            Map<String, Object> own = new HashMap<>(Map.of("vectors", shift.ownHash, "weight", preferred ? shift.weight : 0.0));
            Fields.put(own, "language", preferred ? spoken : null);
            made.put("own", own);
        }
        return made;
    }

    /** Moves texts that came as strings to the fields of their language. */
    private static void move(Map<String, Object> document, List<String> strings, String spoken) {
        for (String path : strings) {
            String words = (String) Fields.at(document, path);
            Fields.put(document, path, words.isEmpty() ? null : new HashMap<>(Map.of(spoken, words)));
        }
    }

    // Numbers: in double arithmetic, rounded once, as NumPy does it.

    /**
     * Makes of a vector as its old stamp has it what its new one says: what it was given of the preference for its language
     * goes first, then what was taken away comes back, and the gamma becomes the index's.
     *
     * @param stamped null where it has none, and is as the encoder made it
     */
    private void restamp(Map<String, Object> document, Object value, Object stamped, Map<String, Object> made, String name) {
        Map<String, Object> old = IndexFacts.map(stamped);
        Map<String, Object> preferred = IndexFacts.map(old.get("own")), given = IndexFacts.map(made.get("own"));
        double gamma = IndexFacts.number(old.get("gamma"), 0), alpha = IndexFacts.number(old.get("alpha"), 0);
        String had = alpha == 0 ? "" : String.valueOf(old.get("language")), key = IndexFacts.text(made, "language", "");
        double scale = IndexFacts.number(made.get("alpha"), 0);
        if (key.equals(had)) {
            // One and the same vector: what is left of it is exact to rounding.
            alpha -= scale;
            scale = 0;
        }
        boolean weighed = IndexFacts.number(preferred.get("weight"), 0) != 0;
        boolean same = weighed ? preferred.equals(given) : !given.containsKey("language");
        if (alpha != 0 || scale != 0 || gamma != shift.gamma || !same) {
            double[] changed = numbers(value, name), step = new double[changed.length];
            @SuppressWarnings("unchecked")
            List<Object> numbers = (List<Object>) value;
            prefer(changed, -1, preferred, name);
            add(step, alpha, had, shift.vectors.get(had), name);
            add(step, -scale, key, shift.vectors.get(key), name);
            shift.transform(changed, step, gamma, shift.gamma);
            prefer(changed, 1, given, name);
            boolean finite = true;
            for (int i = 0; i < changed.length; i++) {
                float one = (float) changed[i];
                finite = finite && Float.isFinite(one);
                numbers.set(i, one);
            }
            if (!finite) {
                throw new IllegalArgumentException(name + " has numbers in " + vector + " that are too large for float32.");
            }
        } else if (shift.hash != null && shift.hash.equals(old.get("vectors"))) {
            // Already what this index makes of it, but for the page.
            putStamp(document, old);
            return;
        }
        putStamp(document, made);
    }

    /** With the page, by which a search shows each once: the group, else the document that a chunk is of, or itself. */
    private void putStamp(Map<String, Object> document, Map<String, Object> made) {
        if (paged) {
            Stream<Object> named = Stream.of(first(document, group), first(document, parent), document.get("_id"));
            made.put("page", named.filter(Objects::nonNull).findFirst().orElseGet(() -> UUID.randomUUID().toString()));
        }
        Fields.put(document, stamp, made);
    }

    /** The first value of a field; null where that is no word or number. */
    private static String first(Map<String, Object> document, String path) {
        Object value = path == null ? null : Fields.at(document, path);
        Object one = value instanceof List<?> list && !list.isEmpty() ? list.get(0) : value;
        boolean usable = one instanceof Number || one instanceof String text && !text.isEmpty();
        return usable && one.toString().length() <= 8191 ? one.toString() : null;
    }

    private void prefer(double[] sum, int sign, Map<String, Object> own, String name) {
        String spoken = String.valueOf(own.get("language"));
        add(sum, sign * IndexFacts.number(own.get("weight"), 0), spoken, shift.preferences.get(spoken), name);
    }

    private static void add(double[] sum, double weight, String key, float[] known, String name) {
        if (weight == 0) {
            return;
        }
        if (known == null) {
            throw new IllegalArgumentException(
                name + " was shifted by a vector for " + key + ", which its index does not hold: index the corpus again."
            );
        }
        for (int i = 0; i < sum.length; i++) {
            sum[i] += weight * known[i];
        }
    }

    /** Little-endian 32-bit floats in base64, as k-NN reads vectors from 3.7 on, as a list of numbers. */
    private List<Object> unpacked(String text, String name) {
        byte[] packed = {};
        try {
            packed = Base64.getDecoder().decode(text);
        } catch (IllegalArgumentException error) {
            // Told below.
        }
        if (packed.length == 0 || packed.length % Float.BYTES != 0) {
            throw new IllegalArgumentException(
                name + " has a string in " + vector + " that is no base64 of little-endian 32-bit floats: give it a vector."
            );
        }
        List<Object> numbers = new ArrayList<>();
        for (float one : IndexFacts.decoded(text)) {
            if (!Float.isFinite(one)) {
                throw new IllegalArgumentException(name + " has a number in " + vector + " that is not finite: give it a vector.");
            }
            numbers.add(one);
        }
        return numbers;
    }

    /** The numbers of a vector, refused where it is none of this index. */
    private double[] numbers(Object value, String name) {
        requireNumbers(value, name);
        return ((List<?>) value).stream().mapToDouble(one -> ((Number) one).floatValue()).toArray();
    }

    private void requireNumbers(Object value, String name) {
        if (!(value instanceof List<?> numbers)) {
            throw new IllegalArgumentException(name + " holds no list of numbers in " + vector + ": give it a vector.");
        }
        int dimension = shift.dimension();
        if (dimension > 0 && numbers.size() != dimension) {
            throw new IllegalArgumentException(
                name + " has a vector of dimension " + numbers.size() + " in " + vector + ", not " + dimension
                    + ": give it one of this index's encoder."
            );
        }
        for (Object one : numbers) {
            if (!(one instanceof Number)) {
                throw new IllegalArgumentException(
                    name + " has " + (one == null ? "null" : "\"" + one + "\"") + " in " + vector + ", which is no number: give it a vector."
                );
            }
        }
    }
}
