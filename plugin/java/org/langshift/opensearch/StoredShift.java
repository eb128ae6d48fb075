package org.langshift.opensearch;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The shift that an index keeps, as `plugin/stored_shift.py` has it: language vectors, scales, and what gamma takes out. */
final class StoredShift {

    private static final float[] NONE = {};

    /** Names the language vectors; null where there are none, and nothing moves. */
    final String hash;
    final double gamma;
    private final String pivot;
    private final double alpha;
    private final Map<String, Object> alphas;
    private final Map<String, float[]> vectors = new HashMap<>();
    /** The mean of documents, and orthonormal rows one after the other; empty where the index keeps none. */
    private final float[] mean, directions;

    /**
     * @param fingerprint `_meta.langshift`
     * @param stored `_meta.langshift_vectors`
     */
    StoredShift(String index, Map<String, Object> fingerprint, Map<String, Object> stored) {
        IndexFacts.checkFingerprint(index, fingerprint);
        hash = (String) fingerprint.get("vectors");
        pivot = (String) fingerprint.get("pivot");
        boolean moves = hash != null;
        alpha = moves ? IndexFacts.number(fingerprint.get("alpha"), 0) : 0;
        alphas = moves ? IndexFacts.map(fingerprint.get("alphas")) : Map.of();
        gamma = moves ? IndexFacts.number(fingerprint.get("gamma"), 0) : 0;
        boolean complete = Objects.equals(hash, stored.get("hash")) && (gamma == 0 || stored.containsKey("directions"));
        Refused.when(
            moves && !complete,
            "Index " + index + " does not contain its language vectors (" + hash + "): index the corpus again."
        );
        IndexFacts.map(moves ? stored.get("vectors") : null).forEach((tag, packed) -> vectors.put(tag, IndexFacts.decoded((String) packed)));
        boolean step = moves && stored.containsKey("directions");
        mean = step ? IndexFacts.decoded((String) stored.get("common")) : NONE;
        directions = step ? IndexFacts.decoded((String) stored.get("directions")) : NONE;
    }

    /** How many numbers a vector has; 0 where only the index itself knows. */
    int dimension() {
        return vectors.values().stream().mapToInt(one -> one.length).findFirst().orElse(0);
    }

    /** V of a language; null where the index holds none. */
    float[] vector(String key) {
        return vectors.get(key);
    }

    boolean keepsDirections() {
        return directions.length > 0;
    }

    /** How much of its vector is taken from documents of a language. */
    double scale(String key) {
        return IndexFacts.number(alphas.get(key), alpha);
    }

    /** The tag of the vector that documents of a language take, empty where they are not shifted: `vector_tag`. */
    String key(String told) {
        // A stored tag has hyphens; what else stands in its field is none.
        String tag = told.indexOf('_') < 0 ? Languages.canonical(told) : Languages.UND, wide = Languages.primary(tag);
        if (tag.equals(Languages.UND) || tag.equals(pivot)) {
            return "";
        }
        if (vectors.containsKey(tag)) {
            return tag;
        }
        return Stream.of(wide, Languages.macrolanguage(tag))
            .filter(Objects::nonNull)
            .map(wider -> widerKey(wider, Languages.script(tag), Languages.script(wide)))
            .filter(Objects::nonNull)
            .findFirst()
            .map(key -> key.equals(pivot) ? "" : key)
            .orElse("");
    }

    /** Of the vectors of a language that which is in one of these scripts, else in its usual one; null where there is none. */
    private String widerKey(String wider, String... scripts) {
        Map<String, String> own = new TreeMap<>();
        Stream.concat(vectors.keySet().stream(), Stream.ofNullable(pivot))
            .filter(tag -> Languages.primary(tag).equals(wider))
            .forEach(tag -> own.put(tag, Languages.script(tag)));
        String usual = Languages.script(wider);
        String script = usual;
        for (String one : scripts) {
            if (own.containsValue(one)) {
                script = one;
                break;
            }
        }
        String key = wider;
        if (script != null && !script.equals(usual)) {
            String found = script, alone = Languages.canonical(wider + "-" + script);
            // That of the script alone comes before those of regions.
            key = own.keySet()
                .stream()
                .filter(tag -> found.equals(own.get(tag)))
                .min(Comparator.comparing(tag -> !tag.equals(alone)))
                .orElse(wider);
        }
        return own.containsKey(key) ? key : null;
    }

    /**
     * Takes a vector from one gamma to another, and adds a step before that is multiplied: from 0 to γ it is
     * `(I − γ BᵀB)(z + step − m) + (1 − γ) m`, from γ to 0 what takes this back.
     */
    void transform(double[] vector, double[] step, double before, double after) {
        if (before != 0 || after != 0) {
            double[] along = new double[vector.length];
            // What is left of y in (I − γ' BᵀB)(y + γ / (1 − γ) BᵀB y), less y.
            double times = (before - after) / (1.0 - before);
            for (int i = 0; i < vector.length; i++) {
                along[i] = times * (vector[i] - (1.0 - before) * mean[i]) - after * step[i];
                vector[i] += (before - after) * mean[i];
            }
            for (int start = 0; start < directions.length; start += vector.length) {
                double part = 0;
                for (int i = 0; i < vector.length; i++) {
                    part += directions[start + i] * along[i];
                }
                for (int i = 0; i < vector.length; i++) {
                    vector[i] += part * directions[start + i];
                }
            }
        }
        for (int i = 0; i < vector.length; i++) {
            vector[i] += step[i];
        }
    }
}
