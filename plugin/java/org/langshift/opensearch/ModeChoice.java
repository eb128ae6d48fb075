package org.langshift.opensearch;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

import org.langshift.opensearch.SearchArguments.Setting;

/**
 * How an index is searched in a setting, and why: `resolve` of `retrieval/calibration/stored.py`.
 *
 * @param setting with the mode that is searched in, not `auto`
 * @param origin whether that was `asked` for, is what the `calibration` found to be best, or the `default` without one
 */
record ModeChoice(Setting setting, String origin, String reason) {

    // A calibration needs queries out of as many documents.
    private static final int FEWEST_CALIBRATED = 30;

    /**
     * What is searched.
     *
     * @param name as it was asked for
     * @param counts language -> how many documents are in it, most frequent first, without `und`
     */
    record Index(String name, IndexFacts facts, Map<String, Long> counts, long documents) {

        private boolean canBeCalibrated() {
            long known = counts.values().stream().mapToLong(Long::longValue).sum();
            return known >= FEWEST_CALIBRATED && counts.size() > 1
                && !String.valueOf(facts.fingerprint.get("encoder")).split(":")[0].equals("given");
        }

        private String command() {
            return "run `langshift anchors calibrate " + name + "`";
        }
    }

    static ModeChoice of(Index index, Setting setting) {
        if (setting.mode().equals("auto")) {
            return auto(index, setting);
        }
        Calibration kept = setting.mode().equals("anchored") ? Calibration.of(index.facts) : null;
        if (kept != null && kept.strength() == 0) {
            String reason = "Mode anchored, as requested; its strength in " + index.name + " is 0, so it finds what dense finds.";
            return new ModeChoice(setting.with("dense", setting.lexicalWeight()), "asked", reason);
        }
        return new ModeChoice(setting, "asked", "Mode " + setting.mode() + ", as requested.");
    }

    private static ModeChoice auto(Index index, Setting setting) {
        Setting dense = setting.with("dense", setting.lexicalWeight());
        Calibration kept;
        try {
            kept = Calibration.of(index.facts);
        } catch (IllegalArgumentException unreadable) {
            String prefix = "[" + LangshiftQueryBuilder.NAME + "] ";
            return new ModeChoice(dense, "default", unreadable.getMessage().substring(prefix.length()));
        }
        List<String> changed = kept == null ? List.of() : changes(index);
        if (kept == null || !changed.isEmpty()) {
            String unusable = kept == null ? "is not calibrated, so mode anchored uses default values and auto is dense"
                : "was calibrated with " + String.join(" and ", changed) + ", so mode auto is dense";
            String again = kept == null ? "" : " again", remedy = index.canBeCalibrated() ? ": " + index.command() + again : "";
            return new ModeChoice(dense, "default", index.name + " " + unusable + remedy + ".");
        }
        Object weight = IndexFacts.map(index.facts.calibration).get("lexical_weight");
        if (kept.mode().equals("hybrid") && IndexFacts.number(IndexFacts.map(index.facts.calibration).get("sparse_weight"), 0) > 0) {
            String reason = "Mode auto stands for hybrid with weights of tokens in " + index.name
                + ", which langshift's own searches do, so here it is dense.";
            return new ModeChoice(dense, "default", reason);
        }
        String figures = switch (kept.mode()) {
            case "anchored" -> " (strength " + shortest(kept.strength()) + ")";
            case "hybrid" -> " (lexical weight " + weight + ")";
            default -> "";
        };
        boolean weighs = kept.mode().equals("hybrid") && weight != null;
        Setting made = setting.with(kept.mode(), weighs ? IndexFacts.number(weight, 0) : setting.lexicalWeight());
        String reason = "Mode " + kept.mode() + figures + ", which calibration found to be best for " + index.name + ".";
        return new ModeChoice(made, "calibration", reason);
    }

    /** What became another than it was when the index was calibrated. */
    private static List<String> changes(Index index) {
        Map<String, Object> then = IndexFacts.map(IndexFacts.map(index.facts.calibration).get("measured_with"));
        Map<String, Object> now = index.facts.fingerprint;
        List<String> made = new ArrayList<>();
        if (!Objects.equals(then.get("vectors"), now.get("vectors"))) {
            made.add("different language vectors");
        } else {
            for (String name : List.of("alpha", "gamma")) {
                Object of = now.getOrDefault(name, 0.0);
                if (IndexFacts.number(then.get(name), Double.NaN) != IndexFacts.number(of, 0)) {
                    made.add(name + " " + then.get(name) + " (now " + of + ")");
                }
            }
            boolean others = !Calibration.numbers(then.get("alphas")).equals(Calibration.numbers(now.get("alphas")));
            if (others && made.stream().noneMatch(one -> one.startsWith("alpha "))) {
                made.add("different alphas for individual languages");
            }
        }
        int documents = (int) IndexFacts.number(then.get("documents"), 0);
        if (!Calibration.holds(documents, index.documents)) {
            made.add(String.format(Locale.ROOT, "%,d documents (now %,d)", documents, index.documents));
        }
        return made;
    }

    /** What a searcher in a mode that was asked for should know of the calibration. */
    static List<String> remarks(Index index, Setting asked) {
        ModeChoice choice = auto(index, asked);
        if (choice.origin.equals("default")) {
            return asked.mode().equals("anchored") ? List.of(choice.reason) : List.of();
        }
        if (!asked.mode().equals("hybrid")) {
            return List.of();
        }
        Object safe = IndexFacts.map(index.facts.calibration).get("lexical_weight");
        if (safe == null) {
            return List.of("Calibration found no weight of words at which hybrid search of " + index.name + " loses nothing.");
        }
        return asked.lexicalWeight() <= IndexFacts.number(safe, 0) ? List.of()
            : List.of(
                "Hybrid search of " + index.name + " may lose answers with words weighing " + shortest(asked.lexicalWeight())
                    + ": calibration found " + shortest(IndexFacts.number(safe, 0))
                    + " to be the highest weight tried at which nothing is lost."
            );
    }

    /** A number with six digits, without zeros at its end. */
    private static String shortest(double number) {
        BigDecimal made = new BigDecimal(number).round(new MathContext(6)).stripTrailingZeros();
        return made.signum() == 0 ? "0" : made.toPlainString();
    }
}
