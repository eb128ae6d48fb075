package org.langshift.opensearch;

import java.util.Arrays;
import java.util.List;

/** The rule of `retrieval/anchored.py`, where it is explained: what the query is moved towards, and what is added. */
final class Anchors {

    static final int NEAREST = 5, OWN = 3, OTHERS = 5;
    private static final double CLOSENESS = 1.95, OTHER_WORDS = 1.43, SHARPNESS = 1.5;
    private static final double OWN_BONUS = 0.7, COUNTERPART_BONUS = 2, WORDS_BONUS = 0.7;
    private static final double OWN_WORDS = 32, OWN_PRIOR = -0.5, LEAST_WEIGHT = 0.001, LEAST_LENGTH = 1e-6;

    /**
     * A document that may answer the query.
     *
     * @param own whether it is in the searcher's language
     * @param words its BM25 score; 0 where no words match, or where others were found by them instead
     * @param vector of length 1
     */
    record Candidate(boolean own, double words, double[] vector) {}

    /**
     * What the candidates are judged with.
     *
     * @param counterpart how likely an answer in another language is there in the searcher's, too, 0 to 1
     * @param preferred how far documents in the searcher's language prefer it already, in units of cosine
     * @param documents of the searcher's language, on a shard's average
     * @param words how many different words the query has, at least 1
     * @param best the highest score by words of all that was gathered, also of what is no candidate as it has no vector
     * @param hasOwn whether the index has documents in the searcher's language
     */
    record Setting(
        double strength, double spread, double counterpart, double[][] directions, double preferred, double documents, int words,
        double best, boolean hasOwn, double preference
    ) {}

    /**
     * What the second step searches with.
     *
     * @param bonus what is added for the searcher's language on the scale of scores, or below 0 to all others
     * @param given what each candidate is given for words in other languages
     */
    record Moved(float[] vector, double bonus, double[] given) {}

    private Anchors() {}

    /** @param candidates at least one */
    static Moved move(double[] query, List<Candidate> candidates, Setting how) {
        double part = rho(query, how.directions);
        double[] trusted = probabilities(query, candidates, how, how.spread * part);
        double own = 0, others = 0;
        double[] sum = query.clone();
        for (int i = 0; i < trusted.length; i++) {
            Candidate one = candidates.get(i);
            double lead = how.strength * Math.pow(trusted[i], SHARPNESS);
            own += one.own ? lead : 0;
            others += one.own ? 0 : lead;
            if (lead >= LEAST_WEIGHT) {
                double weight = lead * part;
                for (int d = 0; d < sum.length; d++) {
                    sum[d] += weight * one.vector[d];
                }
            }
        }
        // The one candidate may lie opposite the query; what is left of that has no direction.
        float[] moved = rounded(length(sum) > LEAST_LENGTH ? unit(sum) : query);
        double spread = how.spread * rho(unit(doubles(moved)), how.directions);
        double[] given = new double[trusted.length];
        for (int i = 0; i < given.length; i++) {
            Candidate one = candidates.get(i);
            given[i] = one.own || one.words == 0 ? 0 : how.strength * WORDS_BONUS * spread * one.words / how.best / 2;
        }
        double led = spread * (OWN_BONUS * own + COUNTERPART_BONUS * how.counterpart * others) - how.preferred * (own + others);
        return new Moved(moved, how.hasOwn ? (led + how.preference) / 2 : 0, given);
    }

    private static double[] probabilities(double[] query, List<Candidate> candidates, Setting how, double spread) {
        double rarest = Math.log(1 + (how.documents + 0.5) / 0.5);
        double[] made = new double[candidates.size()], cosines = new double[made.length];
        double nearest = Double.NEGATIVE_INFINITY, best = Double.NEGATIVE_INFINITY, sum = 0;
        for (int i = 0; i < made.length; i++) {
            cosines[i] = dot(candidates.get(i).vector, query);
            nearest = Math.max(nearest, cosines[i]);
        }
        for (int i = 0; i < made.length; i++) {
            Candidate one = candidates.get(i);
            double found = one.words / rarest;
            double words = one.own ? OWN_WORDS * found * found / how.words + OWN_PRIOR : OTHER_WORDS * Math.log1p(one.words);
            made[i] = words - CLOSENESS * (nearest - cosines[i]) / spread;
            best = Math.max(best, made[i]);
        }
        for (int i = 0; i < made.length; i++) {
            made[i] = Math.exp(made[i] - best);
            sum += made[i];
        }
        for (int i = 0; i < made.length; i++) {
            made[i] /= sum;
        }
        return made;
    }

    /** The part of a vector of length 1 that documents have, too: without what lies along the directions. */
    static double rho(double[] unit, double[][] directions) {
        if (directions.length == 0) {
            return 1;
        }
        double[] rest = unit.clone();
        for (double[] row : directions) {
            double along = dot(row, unit);
            for (int d = 0; d < rest.length; d++) {
                rest[d] -= along * row[d];
            }
        }
        return Math.max(LEAST_LENGTH, length(rest));
    }

    // Fewer documents tell nothing; then the spread is that of a usual model.
    private static final int FEWEST = 5;
    private static final double USUAL_SPREAD = 0.05, LEAST_SPREAD = 1e-3, NORMAL = 1.4826;

    /** The robust standard deviation of the cosine of all pairs of documents: `spread_of` of calibration/stored.py. */
    static double spread(List<double[]> units) {
        if (units.size() < FEWEST) {
            return USUAL_SPREAD;
        }
        double[] cosines = new double[units.size() * (units.size() - 1) / 2];
        int at = 0;
        for (int i = 0; i < units.size(); i++) {
            for (int j = i + 1; j < units.size(); j++) {
                cosines[at++] = dot(units.get(i), units.get(j));
            }
        }
        double middle = median(cosines);
        for (int i = 0; i < cosines.length; i++) {
            cosines[i] = Math.abs(cosines[i] - middle);
        }
        return Math.max(LEAST_SPREAD, NORMAL * median(cosines));
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        int half = values.length / 2;
        return values.length % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    }

    static double[] doubles(float[] vector) {
        double[] made = new double[vector.length];
        Arrays.setAll(made, i -> vector[i]);
        return made;
    }

    static double length(double[] vector) {
        return Math.sqrt(dot(vector, vector));
    }

    static double[] unit(double[] vector) {
        double length = Math.max(length(vector), Double.MIN_NORMAL);
        double[] made = new double[vector.length];
        Arrays.setAll(made, i -> vector[i] / length);
        return made;
    }

    private static float[] rounded(double[] vector) {
        float[] made = new float[vector.length];
        for (int i = 0; i < made.length; i++) {
            made[i] = (float) vector[i];
        }
        return made;
    }

    static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += a[i] * b[i];
        }
        return sum;
    }
}
