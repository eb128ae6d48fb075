package org.langshift.opensearch;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

import org.opensearch.OpenSearchStatusException;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.support.GroupedActionListener;
import org.opensearch.common.document.DocumentField;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.search.SearchHit;
import org.opensearch.search.aggregations.AggregationBuilders;
import org.opensearch.search.aggregations.bucket.terms.Terms;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.collapse.CollapseBuilder;
import org.opensearch.search.fetch.subphase.FetchSourceContext;
import org.opensearch.transport.client.Client;

import org.langshift.opensearch.SearchSpec.Addition;
import org.langshift.opensearch.SearchSpec.Mode;
import org.langshift.opensearch.SearchSpec.Trust;

/** What the coordinating node asks of several shards before the search itself, which then knows what no shard knows alone. */
final class Rounds {

    private final Node node;
    private final IndexFacts facts;
    /** Whether the search goes through an alias that leaves documents out. */
    private final boolean partial;
    private final SearchRequest like;
    private final SearchSpec spec, asked;

    /**
     * @param like the search whose query this is: the rounds go where it goes
     * @param asked what was asked for, as which the searches of the rounds are printed
     */
    Rounds(Node node, LangshiftQueryBuilder.Target target, SearchRequest like, SearchSpec spec, SearchSpec asked) {
        this.node = node;
        this.facts = target.facts();
        this.partial = target.filter() != null;
        this.like = like;
        this.spec = spec;
        this.asked = asked;
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
        move(client, ActionListener.wrap(moved -> {
            if (merges()) {
                new Merge(client, moved, ActionListener.map(then, found -> given(moved, found))).run();
            } else {
                then.onResponse(moved);
            }
        }, then::onFailure));
    }

    // Where the query is moved.

    private void move(Client client, ActionListener<SearchSpec> then) {
        if (!moves()) {
            then.onResponse(spec);
            return;
        }
        List<SearchRequest> requests = new ArrayList<>();
        requests.add(
            ofAll(
                new SearchSourceBuilder().size(0).trackTotalHits(true).query(spec.restriction())
                    .aggregation(AggregationBuilders.terms("languages").field(facts.language).size(1000))
            )
        );
        if (spec.mode() == Mode.ANCHORED) {
            // How many documents a shard has says nothing of all.
            SearchSpec spec = this.spec.with(new Trust(this.spec.trust().strength(), this.spec.trust().spread(), 0, 0));
            requests.add(request(bare(spec.with(Mode.NEAREST), Anchors.NEAREST)));
            requests.add(request(bare(spec.with(Mode.WORDS), (Anchors.OWN + Anchors.OTHERS) * facts.shards)));
            if (Double.isNaN(spec.trust().spread())) {
                requests.add(ofAll(bare(spec.with(Mode.SAMPLE), ShardIndex.SAMPLE)));
            }
        }
        ask(client, requests, ActionListener.wrap(answers -> then.onResponse(moved(answers)), then::onFailure));
    }

    /** The body of a search that brings of each document the language alone. */
    private SearchSourceBuilder bare(SearchSpec of, int size) {
        return new SearchSourceBuilder().query(new LangshiftQueryBuilder(node, of, asked)).size(Math.min(size, facts.window))
            .trackTotalHits(false).fetchSource(false).docValueField(facts.language);
    }

    private SearchSpec moved(SearchResponse[] answers) {
        long documents = answers[0].getHits().getTotalHits().value();
        int then = spec.trust().documents();
        if (then > 0 && !Calibration.holds(then, documents)) {
            return spec.dense();
        }
        Refused.when(spec.mode() == Mode.HYBRID, ShardSearch.hybrid(facts));
        Terms languages = answers[0].getAggregations().get("languages");
        Terms.Bucket same = spec.knowsLanguage() ? languages.getBucketByKey(spec.language()) : null;
        long own = same == null ? 0 : same.getDocCount();
        double spread = spec.trust().spread();
        if (Double.isNaN(spread)) {
            spread = Anchors.spread(List.copyOf(vectors(answers[3]).values()));
        }
        Map<String, double[]> vectors = vectors(answers[1]);
        vectors.putAll(vectors(answers[2]));
        int words = 1;
        for (SearchHit hit : answers[2].getHits()) {
            words = vectors.containsKey(hit.getId()) ? Math.max(words, (int) hit.field(VectorsFetch.WORDS).getValue()) : words;
        }
        // What has no vector has its place among the best by words all the same.
        List<Entry> chosen = chosen(entries(answers[1]), entries(answers[2]));
        List<double[]> theirs = chosen.stream().map(one -> vectors.get(one.id)).toList();
        double average = (double) (facts.split ? own : documents) / answers[0].getTotalShards();
        Map<String, Float> given = new HashMap<>();
        SearchSpec moved = spec.moved(
            chosen, theirs, spread, facts, own > 0 ? words : 1, own, average, (one, score) -> given.put(one.id, score)
        );
        return moved.with(new Addition(moved.addition().bonus(), moved.addition().both(), given));
    }

    /** The nearest, with a score of 0, and of what all shards found by words the best in the own language and in others. */
    private List<Entry> chosen(List<Entry> near, List<Entry> gathered) {
        Map<String, Entry> chosen = new LinkedHashMap<>();
        for (Entry one : near) {
            one.score = 0;
            chosen.put(one.id, one);
        }
        for (boolean own : new boolean[] { true, false }) {
            gathered.stream().filter(one -> spec.isOwn(one) == own).sorted(Entry.BY_SCORE)
                .limit(own ? Anchors.OWN : Anchors.OTHERS).forEach(one -> chosen.put(one.id, one));
        }
        return List.copyOf(chosen.values());
    }

    private Map<String, double[]> vectors(SearchResponse answer) {
        Map<String, double[]> made = new LinkedHashMap<>();
        for (SearchHit hit : answer.getHits()) {
            DocumentField vector = hit.field(VectorsFetch.VECTOR);
            if (vector != null) {
                made.put(hit.getId(), facts.plain(vector.getValue(), value(hit, facts.language, Languages.UND)));
            }
        }
        return made;
    }

    /** Puts together what the shards find. */
    private final class Merge {
        private final Client client;
        private final SearchSpec of;
        private final ActionListener<List<Entry>> then;
        /** Of chunks that name no document the server brings only one, where it brings the best of each document alone. */
        private boolean collapses = facts.parent != null;

        Merge(Client client, SearchSpec of, ActionListener<List<Entry>> then) {
            this.client = client;
            this.of = of;
            this.then = then;
        }

        void run() {
            if (of.mode() == Mode.BALANCED) {
                balanced();
            } else if (of.onePerGroup()) {
                groups(of.groupsDepth());
            } else {
                find(List.of(of), of.size(), found -> then.onResponse(found.get(0)));
            }
        }

        private void balanced() {
            double beta = of.effectivePreference();
            int k = facts.parent == null ? LangshiftQueryBuilder.LEAST_CANDIDATES : of.onePerGroup() ? of.groupsDepth() : of.k();
            SearchSpec plain = of.with(Mode.DENSE).with(Addition.NONE).deep(k, ShardSearch.POOL, false);
            List<SearchSpec> searches = new ArrayList<>(List.of(plain));
            if (beta != 0) {
                searches.add(plain.with(ShardIndex.all(of.filter(), ShardIndex.favoured(facts, of.language(), beta))));
            }
            find(searches, ShardSearch.POOL, found -> {
                List<Entry> ranked = ShardSearch.balanced(found.get(0), beta == 0 ? List.of() : found.get(1), of);
                if (of.onePerGroup()) {
                    heads(Entry.firstOfEach(ranked, true));
                } else {
                    then.onResponse(ranked);
                }
            });
        }

        /** Searches deeper and deeper, until there are as many groups as are wanted, or no more documents. */
        private void groups(int k) {
            int wide = Math.min(LangshiftQueryBuilder.MOST, of.trust().strength() == 0 ? k : 2 * k * facts.shards);
            // Of chunks, and of more than an answer may hold, each shard looks as deep as its own groups need.
            if (facts.parent != null || wide > facts.window) {
                find(List.of(of.with(Mode.GROUPS)), of.size() * facts.shards, found -> heads(Entry.firstOfEach(found.get(0), true)));
                return;
            }
            find(List.of(of.with(Mode.GROUPS).deep(k, wide, false)), wide, found -> {
                List<Entry> first = Entry.firstOfEach(found.get(0), true);
                if (first.size() >= of.size() || found.get(0).size() < k || k == LangshiftQueryBuilder.MOST) {
                    heads(first);
                } else {
                    groups(ShardSearch.deeper(k, of.size(), first.size()));
                }
            });
        }

        private void heads(List<Entry> first) {
            List<Entry> found = first.subList(0, Math.min(of.size(), first.size()));
            List<String> groups = found.stream().filter(one -> one.group != null).map(one -> one.group).toList();
            if (groups.isEmpty()) {
                then.onResponse(found);
                return;
            }
            QueryBuilder members = ShardIndex.all(QueryBuilders.termsQuery(facts.group, groups), of.filter());
            find(List.of(of.with(Mode.EXACT).with(members)), LangshiftQueryBuilder.MOST, all -> {
                then.onResponse(Entry.heads(found, Entry.others(found, all.get(0), of.language()), of.language()));
            });
        }

        /** Carries out searches; of chunks the best of each document is handed on. */
        private void find(List<SearchSpec> searches, int size, Consumer<List<List<Entry>>> next) {
            List<SearchRequest> requests = searches.stream().map(one -> request(source(one, size))).toList();
            ask(client, requests, ActionListener.wrap(answers -> {
                List<List<Entry>> found = Arrays.stream(answers).map(Rounds.this::entries).toList();
                if (collapses && found.stream().anyMatch(all -> all.stream().anyMatch(one -> one.parent == null))) {
                    collapses = false;
                    find(searches, LangshiftQueryBuilder.MOST, next);
                    return;
                }
                next.accept(found.stream().map(all -> Entry.firstOfEach(all, false)).toList());
            }, then::onFailure));
        }

        /** The body of a search that brings what entries are ranked by. */
        private SearchSourceBuilder source(SearchSpec one, int size) {
            SearchSourceBuilder made = bare(one, size);
            if (facts.parent != null) {
                made.docValueField(facts.parent);
            }
            if (of.onePerGroup()) {
                made.fetchSource(new FetchSourceContext(true, new String[] { facts.groupSource }, null));
            }
            return collapses && one.mode() != Mode.GROUPS ? made.collapse(new CollapseBuilder(facts.parent)) : made;
        }
    }

    private static SearchSpec given(SearchSpec of, List<Entry> found) {
        Map<String, Float> scores = new TreeMap<>();
        found.forEach(one -> scores.put(one.id, Math.max(0, one.score)));
        return of.with(Mode.GIVEN).with(new Addition(0, false, scores));
    }

    private List<Entry> entries(SearchResponse answer) {
        return Arrays.stream(answer.getHits().getHits()).map(this::entry).toList();
    }

    private Entry entry(SearchHit hit) {
        Entry made = new Entry(-1, hit.getId(), hit.getScore());
        made.language = value(hit, facts.language, Languages.UND);
        made.parent = facts.parent == null ? null : value(hit, facts.parent, null);
        if (hit.hasSource()) {
            made.group = Entry.group(facts.groupSource, hit.getSourceAsMap());
        }
        return made;
    }

    private static String value(SearchHit hit, String field, String otherwise) {
        DocumentField found = hit.field(field);
        Object first = found == null ? null : found.getValue();
        return first == null ? otherwise : first.toString();
    }

    /** Refuses an answer that not all shards gave. */
    private void requireWhole(SearchResponse answer) {
        if (answer.getFailedShards() > 0 || answer.isTimedOut()) {
            String why = "[langshift] Not all shards of " + facts.index + " answered in time: try again.";
            throw new OpenSearchStatusException(why, RestStatus.SERVICE_UNAVAILABLE);
        }
    }

    /** Sends searches; whole answers are handed on, anything else is a failure. */
    private void ask(Client client, List<SearchRequest> requests, ActionListener<SearchResponse[]> then) {
        SearchResponse[] whole = new SearchResponse[requests.size()];
        // Not as one _msearch, for which a user needs another permission.
        GroupedActionListener<Void> all = new GroupedActionListener<>(
            ActionListener.wrap(none -> then.onResponse(whole), then::onFailure),
            whole.length
        );
        for (int i = 0; i < whole.length; i++) {
            int place = i;
            client.search(requests.get(i), ActionListener.wrap(answer -> {
                requireWhole(answer);
                whole[place] = answer;
                all.onResponse(null);
            }, all::onFailure));
        }
    }

    /** A search of the whole index, whatever an alias leaves out: what is reckoned with is the same by every name. */
    private SearchRequest ofAll(SearchSourceBuilder source) {
        if (!partial) {
            return request(source);
        }
        return sent(new SearchRequest(new String[] { facts.index }, source).preference(like.preference()));
    }

    /** A search that goes where the search itself goes. */
    private SearchRequest request(SearchSourceBuilder source) {
        SearchSourceBuilder outer = like.source();
        SearchRequest made = new SearchRequest(like.indices(), source);
        if (outer != null && outer.pointInTimeBuilder() != null) {
            source.pointInTimeBuilder(outer.pointInTimeBuilder());
        } else {
            made.indicesOptions(like.indicesOptions()).routing(like.routing()).preference(like.preference());
        }
        return sent(made);
    }

    private SearchRequest sent(SearchRequest made) {
        if (like.source() != null && like.source().timeout() != null) {
            made.source().timeout(like.source().timeout());
        }
        // Not through the index's default pipeline.
        return made.pipeline("_none");
    }
}
