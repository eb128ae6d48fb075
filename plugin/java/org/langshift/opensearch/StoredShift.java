package org.langshift.opensearch;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The shift that an index keeps, as `plugin/stored_shift.py` has it: language vectors, scales, and what gamma takes out. */
final class StoredShift {

    /** Names the language vectors; null where there are none, and nothing moves. */
    final String hash;
    final double gamma;
    private final String pivot;
    private final double alpha;
    private final Map<String, Double> alphas;
    /** V of each language. */
    final Map<String, float[]> vectors;
    /** The mean of documents, and orthonormal rows; empty where the index keeps none. */
    private final float[] mean;
    final double[][] directions;
    /** Names the preference vectors; null where there are none. */
    final String ownHash;
    /** How much of that of its language a document is given: β s. */
    final double weight;
    /** u of each language, as its field has it. */
    final Map<String, float[]> preferences;
    /** B Bᵀ − I, once it was needed. */
    private volatile double[][] excess;

    StoredShift(IndexMeta meta) {
        IndexMeta fingerprint = meta.object("langshift"), stored = meta.object("langshift_vectors");
        IndexFacts.checkFingerprint(meta.index(), fingerprint.values());
        hash = fingerprint.text("vectors", null);
        pivot = fingerprint.text("pivot", null);
        boolean moves = hash != null;
        alpha = moves ? fingerprint.number("alpha", 0) : 0;
        alphas = moves ? fingerprint.object("alphas").numbers() : Map.of();
        gamma = moves ? fingerprint.number("gamma", 0) : 0;
        boolean steps = stored.values().containsKey("directions");
        Refused.when(
            moves && !(Objects.equals(hash, stored.text("hash", null)) && (gamma == 0 || steps)),
            "Index " + meta.index() + " does not contain its language vectors (" + hash + "): index the corpus again."
        );
        IndexMeta kept = moves ? stored : new IndexMeta(meta.index(), "", Map.of()), own = kept.object("own");
        int dimension = (int) fingerprint.number("dimension", 0);
        vectors = kept.object("vectors").vectors(dimension);
        mean = moves && steps ? kept.vector("common", dimension) : new float[0];
        directions = IndexFacts.rows(moves && steps ? kept.rows("directions", dimension) : mean, dimension);
        ownHash = own.text("hash", null);
        weight = own.number("weight", 0);
        preferences = own.object("vectors").vectors(dimension);
    }

    /** How many numbers a vector has; 0 where only the index itself knows. */
    int dimension() {
        return vectors.values().stream().mapToInt(one -> one.length).findFirst().orElse(0);
    }

    /** How much of its vector is taken from documents of a language. */
    double scale(String key) {
        return alphas.getOrDefault(key, alpha);
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

    /** Of the vectors of a language that which is in the first of these scripts, else in its usual one; null where there is none. */
    private String widerKey(String wider, String spoken, String implied) {
        Map<String, String> own = new TreeMap<>();
        Stream.concat(vectors.keySet().stream(), Stream.ofNullable(pivot))
            .filter(tag -> Languages.primary(tag).equals(wider))
            .forEach(tag -> own.put(tag, Languages.script(tag)));
        String usual = Languages.script(wider);
        String script = own.containsValue(spoken) ? spoken : own.containsValue(implied) ? implied : usual;
        String key = wider;
        if (script != null && !script.equals(usual)) {
            String alone = Languages.canonical(wider + "-" + script);
            // That of the script alone comes before those of regions.
            key = own.keySet()
                .stream()
                .filter(tag -> script.equals(own.get(tag)))
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
            double[] centred = new double[vector.length];
            for (int i = 0; i < centred.length; i++) {
                centred[i] = vector[i] - (1.0 - before) * mean[i];
                vector[i] += (before - after) * mean[i];
            }
            double[] had = Arrays.stream(directions).mapToDouble(row -> Anchors.dot(row, centred)).toArray();
            // (I − γ' BᵀB)(I + γ Bᵀ K B) is I + (γ − γ') Bᵀ K B, with K = (I − γ B Bᵀ)⁻¹.
            double[] along = before == 0 ? had : solved(had, before);
            for (int k = 0; k < along.length; k++) {
                double part = (before - after) * along[k] - after * Anchors.dot(directions[k], step);
                for (int i = 0; i < vector.length; i++) {
                    vector[i] += part * directions[k][i];
                }
            }
        }
        for (int i = 0; i < vector.length; i++) {
            vector[i] += step[i];
        }
    }

    /** K of these numbers: B Bᵀ is I but for rounding to 32 bits, so that this converges at once. */
    private double[] solved(double[] had, double gamma) {
        if (excess == null) {
            double[][] made = new double[had.length][had.length];
            for (int row = 0; row < had.length; row++) {
                for (int column = 0; column < had.length; column++) {
                    made[row][column] = Anchors.dot(directions[row], directions[column]) - (row == column ? 1 : 0);
                }
            }
            excess = made;
        }
        double[] along = new double[had.length];
        for (int again = 0; again < 4; again++) {
            double[] next = had.clone();
            for (int row = 0; row < had.length; row++) {
                for (int column = 0; column < had.length; column++) {
                    next[row] += gamma * excess[row][column] * along[column];
                }
                next[row] /= 1 - gamma;
            }
            along = next;
        }
        return along;
    }
}
