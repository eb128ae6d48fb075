package org.langshift.opensearch;

import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/**
 * What an index keeps of its calibration, as `retrieval/calibration/stored.py` reads it.
 *
 * @param mode the best mode for the index
 * @param strength how strongly `anchored` moves the query, 0 to 1
 * @param spread standard deviation of the cosine of unrelated documents
 * @param counterpart how likely a document in another language is there in the searcher's, too, 0 to 1
 * @param documents how many there were when it was measured
 * @param outdated whether the documents have been shifted otherwise since
 */
record Calibration(String mode, double strength, double spread, double counterpart, int documents, boolean outdated) {

    static final double USUAL_STRENGTH = 0.05;
    private static final Set<Object> MODES = Set.of("dense", "hybrid", "anchored");
    // An index that has grown or shrunk by as much is another one.
    private static final int MUCH = 2;

    /** Null where the index was never calibrated; an `IllegalArgumentException` where its calibration cannot be read. */
    static Calibration of(IndexFacts facts) {
        if (facts.calibration == null) {
            return null;
        }
        Map<String, Object> kept = IndexFacts.map(facts.calibration), then = IndexFacts.map(kept.get("measured_with"));
        double strength = kept.containsKey("strength") ? IndexFacts.number(kept.get("strength"), -1) : USUAL_STRENGTH;
        double counterpart = kept.containsKey("counterpart") ? IndexFacts.number(kept.get("counterpart"), -1) : 0;
        double spread = IndexFacts.number(kept.get("spread"), -1), documents = IndexFacts.number(then.get("documents"), -1);
        Object mode = kept.get("mode"), weight = kept.get("lexical_weight"), tokens = kept.get("sparse_weight");
        boolean readable = MODES.contains(mode == null ? "" : mode) && share(strength) && spread > 0 && Double.isFinite(spread)
            && share(counterpart) && documents >= 0 && kept.containsKey("lexical_weight")
            && (weight == null ? tokens != null || !"hybrid".equals(mode) : share(IndexFacts.number(weight, -1)))
            && (tokens == null || share(IndexFacts.number(tokens, -1)))
            && kept.get("rerank") instanceof Map<?, ?> rerank
            && rerank.values().stream().allMatch(one -> share(IndexFacts.number(one, -1)));
        Refused.when(
            !readable,
            "The calibration in the mapping of " + facts.index + " (_meta.langshift_anchors) cannot be read: "
                + "run `langshift anchors calibrate` again."
        );
        return new Calibration((String) mode, strength, spread, counterpart, (int) documents, changed(then, facts.fingerprint));
    }

    /** @param documents how many there were, where the mode comes from the calibration; else 0 */
    SearchSpec.Trust trust(int documents) {
        return new SearchSpec.Trust(strength, spread, counterpart, documents);
    }

    private static boolean share(double value) {
        return value >= 0 && value <= 1;
    }

    private static boolean changed(Map<String, Object> then, Map<String, Object> now) {
        return !Objects.equals(then.get("vectors"), now.get("vectors")) || differ(then.get("alpha"), now.get("alpha"))
            || differ(then.get("gamma"), now.getOrDefault("gamma", 0))
            || differ(then.getOrDefault("own", 0), now.getOrDefault("own", 0))
            || !numbers(then.get("alphas")).equals(numbers(now.get("alphas")));
    }

    private static boolean differ(Object one, Object other) {
        return IndexFacts.number(one, Double.NaN) != IndexFacts.number(other, Double.NaN);
    }

    static Map<String, Double> numbers(Object scales) {
        Map<String, Double> made = new TreeMap<>();
        IndexFacts.map(scales).forEach((tag, scale) -> made.put(tag, IndexFacts.number(scale, Double.NaN)));
        return made;
    }

    /** Whether an index of as many documents is still the one that was measured. */
    static boolean holds(int then, long now) {
        return now * MUCH >= then && now <= (long) then * MUCH;
    }
}
