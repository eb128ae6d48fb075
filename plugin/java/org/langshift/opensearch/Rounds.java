package org.langshift.opensearch;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import org.opensearch.OpenSearchStatusException;
import org.opensearch.action.search.MultiSearchRequest;
import org.opensearch.action.search.MultiSearchResponse;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.common.xcontent.support.XContentMapValues;
import org.opensearch.common.document.DocumentField;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.index.query.BoolQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.search.SearchHit;
import org.opensearch.search.aggregations.AggregationBuilders;
import org.opensearch.search.aggregations.bucket.terms.Terms;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.collapse.CollapseBuilder;
import org.opensearch.transport.client.Client;

import org.langshift.opensearch.SearchSpec.Addition;
import org.langshift.opensearch.SearchSpec.Mode;
import org.langshift.opensearch.SearchSpec.Trust;

/** What the coordinating node asks of several shards before the search itself, which then knows what no shard knows alone. */
final class Rounds {

    private final LangshiftPlugin.Node node;
    private final IndexFacts facts;
    private final SearchRequest like;
    private final SearchSpec spec;

    /** @param like the search whose query this is: the rounds go where it goes */
    Rounds(LangshiftPlugin.Node node, IndexFacts facts, SearchRequest like, SearchSpec spec) {
        this.node = node;
        this.facts = facts;
        this.like = like;
        this.spec = spec;
    }

    boolean needed() {
        return facts.shards > 1 && (moves() || merges());
    }

    private boolean moves() {
        return spec.mode() == Mode.ANCHORED || spec.trust().documents() > 0;
    }

    /** Whether what the shards find is put together otherwise than by score alone. */
    private boolean merges() {
        boolean collapsed = like.source() != null && like.source().collapse() != null;
        return spec.mode() == Mode.BALANCED || spec.onePerGroup() || facts.parent != null && !collapsed;
    }

    void run(Client client, ActionListener<SearchSpec> then) {
        ActionListener<SearchSpec> merged = ActionListener.wrap(moved -> {
            if (!merges()) {
                then.onResponse(moved);
            } else if (moved.mode() == Mode.BALANCED) {
                balanced(client, moved, then);
            } else if (moved.onePerGroup()) {
                groups(client, moved, Math.min(LangshiftQueryBuilder.MOST, Math.max(moved.k(), 2 * moved.size())), then);
            } else {
                ask(client, List.of(source(moved, moved.size())), ActionListener.wrap(answers -> {
                    then.onResponse(given(moved, entries(answers[0])));
                }, then::onFailure));
            }
        }, then::onFailure);
        if (moves()) {
            move(client, merged);
        } else {
            merged.onResponse(spec);
        }
    }

    // Where the query is moved.

    private void move(Client client, ActionListener<SearchSpec> then) {
        List<SearchSourceBuilder> sources = new ArrayList<>();
        sources.add(
            new SearchSourceBuilder().size(0).trackTotalHits(true)
                .aggregation(AggregationBuilders.terms("languages").field(facts.language).size(1000))
        );
        if (spec.mode() == Mode.ANCHORED) {
            int each = Anchors.NEAREST + Anchors.OWN + Anchors.OTHERS;
            sources.add(bare(spec.with(Mode.GATHER), each * facts.shards));
            if (Double.isNaN(spec.trust().spread())) {
                sources.add(bare(spec.with(Mode.SAMPLE), ShardIndex.SAMPLE));
            }
        }
        ask(client, sources, ActionListener.wrap(answers -> then.onResponse(moved(answers)), then::onFailure));
    }

    private SearchSourceBuilder bare(SearchSpec of, int size) {
        return new SearchSourceBuilder().query(new LangshiftQueryBuilder(node, of)).size(size).trackTotalHits(false)
            .fetchSource(false).docValueField(facts.language);
    }

    private SearchSpec moved(SearchResponse[] answers) {
        long documents = answers[0].getHits().getTotalHits().value(), own = 0;
        int then = spec.trust().documents();
        if (then > 0 && !Calibration.holds(then, documents)) {
            return spec.dense();
        }
        Refused.when(spec.mode() == Mode.HYBRID, ShardSearch.hybrid(facts));
        Terms languages = answers[0].getAggregations().get("languages");
        for (Terms.Bucket one : languages.getBuckets()) {
            own += spec.knowsLanguage() && one.getKeyAsString().equals(spec.language()) ? one.getDocCount() : 0;
        }
        double spread = spec.trust().spread();
        if (Double.isNaN(spread)) {
            List<double[]> units = new ArrayList<>();
            vectors(answers[2]).values().forEach(one -> units.add(Anchors.unit(one)));
            spread = Anchors.spread(units);
        }
        List<Entry> gathered = new ArrayList<>();
        Map<String, float[]> vectors = vectors(answers[1]);
        int words = 1;
        for (SearchHit hit : answers[1].getHits()) {
            if (vectors.containsKey(hit.getId())) {
                gathered.add(entry(hit));
                words = Math.max(words, (int) hit.field(VectorsFetch.WORDS).getValue());
            }
        }
        if (gathered.isEmpty()) {
            return given(spec, List.of());
        }
        Map<String, Entry> chosen = chosen(gathered, vectors);
        List<Anchors.Candidate> candidates = new ArrayList<>();
        for (Entry one : chosen.values()) {
            candidates.add(new Anchors.Candidate(isOwn(one), one.score, Anchors.unit(vectors.get(one.id))));
        }
        int shards = answers[0].getTotalShards();
        Anchors.Moved to = Anchors.move(
            Anchors.unit(spec.vector()),
            candidates,
            new Anchors.Setting(
                spec.trust().strength(),
                spread,
                facts.directions(),
                (double) (facts.split ? own : documents) / shards,
                own > 0 ? words : 1,
                own > 0,
                spec.effectivePreference()
            )
        );
        Map<String, Float> given = new HashMap<>();
        int at = 0;
        for (String id : chosen.keySet()) {
            if (to.given()[at] > 0) {
                given.put(id, (float) to.given()[at]);
            }
            at++;
        }
        Addition addition = new Addition(to.bonus(), spec.effectivePreference() != 0, given);
        return spec.with(Mode.DENSE).with(to.vector()).with(new Trust(1, spread, 0)).with(addition);
    }

    private boolean isOwn(Entry one) {
        return spec.knowsLanguage() && one.language.equals(spec.language());
    }

    /** Of what all shards gathered the nearest, with a score of 0, and the best by words in the own language and in others. */
    private Map<String, Entry> chosen(List<Entry> gathered, Map<String, float[]> vectors) {
        double[] query = Anchors.unit(spec.vector());
        Map<String, Double> cosines = new HashMap<>();
        gathered.forEach(one -> cosines.put(one.id, Anchors.dot(query, Anchors.unit(vectors.get(one.id)))));
        Map<String, Entry> chosen = new LinkedHashMap<>();
        // What a shard did not list as near cannot be nearer than what it did.
        gathered.stream().sorted((a, b) -> Double.compare(cosines.get(b.id), cosines.get(a.id))).limit(Anchors.NEAREST).forEach(one -> {
            Entry near = new Entry(-1, one.id, 0);
            near.language = one.language;
            chosen.put(one.id, near);
        });
        for (boolean own : new boolean[] { true, false }) {
            gathered.stream().filter(one -> one.score > 0 && isOwn(one) == own).sorted(Entry.BY_SCORE)
                .limit(own ? Anchors.OWN : Anchors.OTHERS).forEach(one -> chosen.put(one.id, one));
        }
        return chosen;
    }

    private static Map<String, float[]> vectors(SearchResponse answer) {
        Map<String, float[]> made = new LinkedHashMap<>();
        for (SearchHit hit : answer.getHits()) {
            DocumentField vector = hit.field(VectorsFetch.VECTOR);
            if (vector != null) {
                made.put(hit.getId(), vector.getValue());
            }
        }
        return made;
    }

    // What the shards find, put together.

    private void balanced(Client client, SearchSpec of, ActionListener<SearchSpec> then) {
        double beta = of.effectivePreference();
        SearchSpec plain = of.with(Mode.DENSE).deep(of.k(), ShardSearch.POOL);
        List<SearchSourceBuilder> sources = new ArrayList<>();
        sources.add(source(plain, ShardSearch.POOL));
        if (beta != 0) {
            QueryBuilder favoured = ShardIndex.favoured(facts, of.language(), beta);
            sources.add(source(plain.with(ShardIndex.all(of.filter(), favoured)), ShardSearch.POOL));
        }
        ask(client, sources, ActionListener.wrap(answers -> {
            List<Entry> all = entries(answers[0]), favoured = beta == 0 ? List.of() : entries(answers[1]);
            List<Entry> found = ShardSearch.balanced(all, favoured, of);
            if (of.onePerGroup()) {
                heads(client, of.dense(), Entry.firstOfEach(found, true), then);
            } else {
                then.onResponse(given(of, found));
            }
        }, then::onFailure));
    }

    private void groups(Client client, SearchSpec of, int k, ActionListener<SearchSpec> then) {
        boolean anchored = spec.mode() == Mode.ANCHORED && of.trust().strength() > 0;
        int size = facts.parent == null && anchored ? Math.min(LangshiftQueryBuilder.MOST, 2 * k * facts.shards) : k;
        ask(client, List.of(source(of.deep(k, facts.parent == null ? size : of.size()), size)), ActionListener.wrap(answers -> {
            List<Entry> found = entries(answers[0]), first = Entry.firstOfEach(found, true);
            boolean more = facts.parent == null ? found.size() >= k : answers[0].getHits().getTotalHits().value() >= k;
            if (first.size() >= of.size() || !more || k == LangshiftQueryBuilder.MOST) {
                heads(client, of, first, then);
            } else {
                groups(client, of, ShardSearch.deeper(k, of.size(), first.size()), then);
            }
        }, then::onFailure));
    }

    private void heads(Client client, SearchSpec of, List<Entry> first, ActionListener<SearchSpec> then) {
        List<Entry> found = first.subList(0, Math.min(of.size(), first.size()));
        List<String> groups = found.stream().filter(one -> one.group != null).map(one -> one.group).toList();
        if (groups.isEmpty()) {
            then.onResponse(given(of, found));
            return;
        }
        BoolQueryBuilder members = QueryBuilders.boolQuery().filter(QueryBuilders.termsQuery(facts.group, groups));
        if (of.filter() != null) {
            members.filter(of.filter());
        }
        SearchSpec exact = of.deep(of.k(), LangshiftQueryBuilder.MOST).with(Mode.EXACT).with((QueryBuilder) members);
        ask(client, List.of(source(exact, LangshiftQueryBuilder.MOST)), ActionListener.wrap(answers -> {
            Set<Object> known = new HashSet<>();
            found.forEach(one -> known.add(one.documentKey()));
            List<Entry> others = new ArrayList<>();
            for (boolean own : new boolean[] { true, false }) {
                entries(answers[0]).stream().filter(one -> !known.contains(one.documentKey()) && isOwn(one) == own).forEach(others::add);
            }
            then.onResponse(given(of, Entry.heads(found, others, of.language())));
        }, then::onFailure));
    }

    private static SearchSpec given(SearchSpec of, List<Entry> found) {
        Map<String, Float> scores = new TreeMap<>();
        found.forEach(one -> scores.put(one.id, Math.max(0, one.score)));
        return of.with(Mode.GIVEN).with(new Addition(0, false, scores));
    }

    /** The body of a round that brings what entries are ranked by: in an index of chunks the best chunk of each document. */
    private SearchSourceBuilder source(SearchSpec of, int size) {
        SearchSourceBuilder made = bare(of, size).trackTotalHits(true);
        if (facts.parent != null) {
            made.docValueField(facts.parent).collapse(new CollapseBuilder(facts.parent));
        }
        return spec.onePerGroup() ? made.fetchSource(facts.groupSource, null) : made;
    }

    private List<Entry> entries(SearchResponse answer) {
        List<Entry> made = new ArrayList<>();
        for (SearchHit hit : answer.getHits()) {
            made.add(entry(hit));
        }
        return made;
    }

    private Entry entry(SearchHit hit) {
        Entry made = new Entry(-1, hit.getId(), hit.getScore());
        made.language = value(hit, facts.language, Languages.UND);
        made.parent = facts.parent == null ? null : value(hit, facts.parent, null);
        if (hit.hasSource()) {
            Object group = XContentMapValues.extractValue(facts.groupSource, hit.getSourceAsMap());
            Object first = group instanceof List<?> several ? several.isEmpty() ? null : several.get(0) : group;
            made.group = first == null ? null : first.toString();
        }
        return made;
    }

    private static String value(SearchHit hit, String field, String otherwise) {
        DocumentField found = hit.field(field);
        return found == null ? otherwise : found.getValue().toString();
    }

    /** Sends searches where the search itself goes; whole answers are handed on, anything else is a failure. */
    private void ask(Client client, List<SearchSourceBuilder> sources, ActionListener<SearchResponse[]> then) {
        MultiSearchRequest all = new MultiSearchRequest();
        sources.forEach(one -> all.add(request(one)));
        client.multiSearch(all, ActionListener.wrap(answered -> {
            List<SearchResponse> whole = new ArrayList<>();
            for (MultiSearchResponse.Item one : answered.getResponses()) {
                if (one.isFailure()) {
                    then.onFailure(one.getFailure());
                    return;
                }
                SearchResponse answer = one.getResponse();
                if (answer.getFailedShards() > 0 || answer.isTimedOut()) {
                    String why = "[langshift] Not all shards of " + facts.index + " answered in time: try again.";
                    then.onFailure(new OpenSearchStatusException(why, RestStatus.SERVICE_UNAVAILABLE));
                    return;
                }
                whole.add(answer);
            }
            then.onResponse(whole.toArray(SearchResponse[]::new));
        }, then::onFailure));
    }

    private SearchRequest request(SearchSourceBuilder source) {
        SearchSourceBuilder outer = like.source();
        SearchRequest made = new SearchRequest(like.indices(), source);
        if (outer != null && outer.timeout() != null) {
            source.timeout(outer.timeout());
        }
        if (outer != null && outer.pointInTimeBuilder() != null) {
            source.pointInTimeBuilder(outer.pointInTimeBuilder());
        } else {
            made.indicesOptions(like.indicesOptions()).routing(like.routing()).preference(like.preference());
        }
        // Not through the index's default pipeline.
        made.pipeline("_none");
        return made;
    }
}
