package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.opensearch.action.search.SearchResponse;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.search.SearchHit;
import org.opensearch.search.builder.SearchSourceBuilder;

/**
 * What the shift did to a document's nearness to the query: `retrieval/effects.py`.
 *
 * @param language of the vector that its own lost; null where it lost none
 * @param before cosine of the query's vector and its own as the encoder made it; null where that cannot be known
 * @param after of the query's vector and its own as it is in the index
 */
record ShiftEffect(String language, double alpha, double gamma, Double before, double after, Integer rankBefore, int rankAfter) {

    /** Compares hits, and the documents nearest to the query, before and after the shift; by `_id`. */
    static Map<String, ShiftEffect> of(
        Requests requests, LangshiftPlugin.Node node, IndexFacts facts, SearchSpec spec, List<Entry> found
    ) throws IOException {
        QueryBuilder near = ShardIndex.knn(facts, spec.vector(), LangshiftQueryBuilder.LEAST_CANDIDATES, spec.filter(), node.contents);
        QueryBuilder hits = SearchExecution.among(found.stream().map(one -> one.id).toList());
        List<SearchResponse> answers = requests.ask(
            List.of(requests.of(body(facts, near, LangshiftQueryBuilder.LEAST_CANDIDATES)), requests.of(body(facts, hits, found.size())))
        );
        StoredShift shift = facts.shift();
        Map<String, ShiftEffect> made = new LinkedHashMap<>();
        for (SearchResponse answer : answers) {
            for (SearchHit hit : answer.getHits()) {
                ShiftEffect one = of(hit.getSourceAsMap(), facts, shift, spec.vector());
                if (one != null) {
                    made.put(hit.getId(), one);
                }
            }
        }
        return ranked(made);
    }

    private static SearchSourceBuilder body(IndexFacts facts, QueryBuilder query, int size) {
        return new SearchSourceBuilder().query(query).size(size).fetchSource(new String[] { facts.vector, facts.stamp }, null);
    }

    private static ShiftEffect of(Map<String, Object> source, IndexFacts facts, StoredShift shift, float[] query) {
        if (!(Fields.at(source, facts.vector) instanceof List<?> numbers)) {
            return null;
        }
        double[] stored = numbers.stream().mapToDouble(one -> ((Number) one).floatValue()).toArray();
        Map<String, Object> stamp = IndexFacts.map(Fields.at(source, facts.stamp));
        double alpha = IndexFacts.number(stamp.get("alpha"), 0), gamma = IndexFacts.number(stamp.get("gamma"), 0);
        double[] raw = raw(stored, stamp, alpha, gamma, shift);
        String language = alpha == 0 ? null : (String) stamp.get("language");
        Double before = raw == null ? null : cosine(query, raw);
        return new ShiftEffect(language, alpha, gamma, before, cosine(query, stored), null, 0);
    }

    /** The vector as the encoder made it; null where that cannot be known. */
    private static double[] raw(double[] stored, Map<String, Object> stamp, double alpha, double gamma, StoredShift shift) {
        boolean byLanguage = alpha != 0;
        if (!byLanguage && gamma == 0) {
            return stored;
        }
        if (shift == null || shift.hash == null || !shift.hash.equals(stamp.get("vectors"))) {
            return null;
        }
        float[] vector = byLanguage ? shift.vector((String) stamp.get("language")) : new float[stored.length];
        if (vector == null || gamma != 0 && !shift.keepsDirections()) {
            return null;
        }
        double[] made = stored.clone(), step = new double[stored.length];
        for (int i = 0; i < step.length; i++) {
            step[i] = alpha * vector[i];
        }
        shift.transform(made, step, gamma, 0);
        return made;
    }

    private static double cosine(float[] query, double[] other) {
        double sum = 0, one = 0, two = 0;
        for (int i = 0; i < other.length; i++) {
            sum += query[i] * other[i];
            one += (double) query[i] * query[i];
            two += other[i] * other[i];
        }
        double norms = Math.sqrt(one) * Math.sqrt(two);
        return norms == 0 ? 0 : sum / norms;
    }

    /** With ranks; a rank before among some of them only would be too good. */
    private static Map<String, ShiftEffect> ranked(Map<String, ShiftEffect> found) {
        boolean all = found.values().stream().allMatch(one -> one.before != null);
        Map<String, Integer> before = all ? ranks(found, true) : Map.of(), after = ranks(found, false);
        found.replaceAll(
            (id, one) -> new ShiftEffect(
                one.language, one.alpha, one.gamma, one.before, one.after, before.get(id), after.get(id)
            )
        );
        return found;
    }

    private static Map<String, Integer> ranks(Map<String, ShiftEffect> found, boolean before) {
        List<String> ids = new ArrayList<>(found.keySet());
        // Of equal ones the first by id comes first.
        ids.sort(
            Comparator.comparingDouble((String id) -> -(before ? found.get(id).before : found.get(id).after))
                .thenComparing(Comparator.naturalOrder())
        );
        Map<String, Integer> made = new HashMap<>();
        ids.forEach(id -> made.put(id, made.size() + 1));
        return made;
    }

    Map<String, Object> shown() {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("language", language);
        made.put("alpha", alpha);
        made.put("gamma", gamma);
        made.put("similarity_before", before);
        made.put("similarity_after", after);
        made.put("rank_before", rankBefore);
        made.put("rank_after", rankAfter);
        return made;
    }
}
