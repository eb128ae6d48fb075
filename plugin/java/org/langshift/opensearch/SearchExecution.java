package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import org.opensearch.ExceptionsHelper;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.support.PlainActionFuture;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.search.SearchHit;
import org.opensearch.search.aggregations.AggregationBuilders;
import org.opensearch.search.aggregations.bucket.terms.Terms;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.sort.SortBuilder;
import org.opensearch.search.sort.SortBuilders;
import org.opensearch.search.sort.SortOrder;
import org.opensearch.tasks.CancellableTask;
import org.opensearch.transport.client.Client;

import org.langshift.opensearch.Entry.Leg;
import org.langshift.opensearch.SearchArguments.Setting;
import org.langshift.opensearch.SearchSpec.Addition;
import org.langshift.opensearch.SearchSpec.Mode;

/** One search, step by step, as `result_plan` of `retrieval/searcher.py` has it; what it sends is sent as who asked for it. */
final class SearchExecution {

    private final LangshiftPlugin.Node node;
    private final String name;
    private final SearchArguments given;
    private final IndexFacts facts;
    private final Requests requests;
    private final Filters fields;
    /** That of the alias by which the index was asked for; null without one. */
    private final QueryBuilder ofAlias;

    private QueryBuilder filter;
    private ModeChoice.Index index;
    private ModeChoice choice;
    private SearchSpec spec;
    private List<SortBuilder<?>> sort = List.of();

    /** What was found by words; null in modes that search by vectors alone, and of these what was found. */
    private WordsSearch words;
    private Rounds.Found near;

    SearchExecution(LangshiftPlugin.Node node, Client client, CancellableTask task, String name, SearchArguments given) throws IOException {
        this.node = node;
        this.name = name;
        this.given = given;
        LangshiftQueryBuilder.Target target = LangshiftQueryBuilder.target(node, new SearchRequest(name), node.contents);
        facts = target.facts();
        ofAlias = target.filter();
        IndexFacts.checkFingerprint(facts.index, facts.fingerprint);
        facts.requireFinished(name, node.cluster.state().metadata().index(facts.index));
        requests = new Requests(client, facts.index, task);
        fields = new Filters(facts, name, requests, node.contents);
    }

    /** Carries it out; what is refused is an `IllegalArgumentException` with a sentence. */
    BytesReference run() throws IOException {
        filter = ShardIndex.all(ofAlias, fields.checked(given.filters(), given.filterQueries()));
        sort = given.sort().stream().<SortBuilder<?>>map(this::sorted).toList();
        Map<String, String> counted = new LinkedHashMap<>();
        given.facets().forEach(field -> counted.put(field, fields.exact(field, "count", false)));
        Refused.when(
            given.passages() > 0 && facts.parent == null,
            "Index " + name + " holds whole documents, so there are no further passages to show: documents are cut into chunks when "
                + "they are loaded with --chunk."
        );
        if (given.setting().onePerGroup()) {
            fields.requireGroups();
        }
        index = count();
        choice = ModeChoice.of(index, given.setting());
        if (choice.setting().needsVector() || given.explain()) {
            facts.checkEngine();
        }
        spec = asked();
        try {
            return search(counted);
        } catch (RuntimeException error) {
            if (ExceptionsHelper.status(ExceptionsHelper.unwrapCause(error)) == RestStatus.BAD_REQUEST) {
                fields.requireFitting();
            }
            throw error;
        }
    }

    private BytesReference search(Map<String, String> counted) throws IOException {
        long begin = System.nanoTime();
        List<Entry> found = find();
        boolean all = sortsAll();
        if (!sort.isEmpty() && !all && !found.isEmpty()) {
            found = sorted(found);
        }
        Map<String, List<Entry>> passages = given.passages() == 0 ? Map.of() : passages(found);
        SearchAnswer answer = new SearchAnswer(facts, given, spec.language());
        answer.read(requests, found, passages);
        double took = (System.nanoTime() - begin) / 1e6;
        answer.facets = counted.isEmpty() ? Map.of() : Facets.count(requests, facts, counted, filter);
        if (given.explain() && !found.isEmpty()) {
            explain(found, answer);
        }
        if (given.snippets()) {
            Snippets.make(requests, facts, spec, answer);
        }
        answer.sorted = sort.isEmpty() ? null : all ? "all" : "found";
        answer.bonus = words != null ? words.bonus() : near.spec().addition().bonus();
        answer.anchors = words != null ? List.of() : near.anchors();
        answer.notes.addAll(0, notes());
        return answer.json(choice, took);
    }

    private List<String> notes() {
        boolean asked = choice.origin().equals("asked");
        List<String> made = new ArrayList<>(asked ? ModeChoice.remarks(index, given.setting()) : List.of());
        String language = spec.language();
        boolean prefers = given.setting().preference() != 0;
        if (!spec.knowsLanguage()) {
            if (prefers) {
                made.add("The query's language is unknown, so no language is preferred: specify it.");
            }
        } else if (!index.counts().containsKey(language)) {
            if (prefers) {
                made.add(
                    name + " has no document in " + language + ", the query's language, so the language preference has no effect."
                );
            } else if (given.language() == null) {
                made.add("The query was read as " + language + ", in which " + name + " has no document.");
            }
        }
        return made;
    }

    /** How many documents the index has, and in which languages. */
    private ModeChoice.Index count() {
        SearchResponse answer = requests.ask(
            new SearchSourceBuilder().size(0).trackTotalHits(true)
                .aggregation(AggregationBuilders.terms("languages").field(facts.language).size(1000))
        );
        Map<String, Long> counts = new LinkedHashMap<>();
        Terms languages = answer.getAggregations().get("languages");
        for (Terms.Bucket one : languages.getBuckets()) {
            counts.put(one.getKeyAsString(), one.getDocCount());
        }
        counts.remove(Languages.UND);
        return new ModeChoice.Index(name, facts, counts, answer.getHits().getTotalHits().value());
    }

    private SearchSpec asked() {
        Setting setting = choice.setting();
        boolean vector = setting.needsVector() || given.explain();
        float[] made = !vector ? new float[0] : given.vector() != null ? given.vector() : encoded();
        String language = given.language();
        if (language == null) {
            Detector detector = node.detector();
            language = detector == null ? Languages.UND : Languages.fold(detector.detectQuery(given.text(), index.counts().keySet()));
        }
        boolean known = !setting.mode().equals("lexical") && !setting.mode().equals("hybrid");
        SearchSpec asked = new SearchSpec(
            known ? Mode.valueOf(setting.mode().toUpperCase(Locale.ROOT)) : Mode.DENSE,
            given.text(), language, made, setting.preference(), 0, 0, setting.onePerGroup(), filter, SearchSpec.NO_TRUST, Addition.NONE
        );
        if (vector) {
            facts.check(made);
            return LangshiftQueryBuilder.resolve(asked, facts, given.size());
        }
        return asked;
    }

    private float[] encoded() {
        PlainActionFuture<float[]> made = PlainActionFuture.newFuture();
        String encoder = String.valueOf(facts.fingerprint.get("encoder"));
        String input = facts.fingerprint.getOrDefault("query_prefix", "") + given.text();
        node.encoders.encode(encoder, facts.dimension, input, made);
        return LangshiftQueryBuilder.checkedVector(made.actionGet());
    }

    private List<Entry> find() throws IOException {
        Setting setting = choice.setting();
        if (setting.mode().equals("lexical") || setting.mode().equals("hybrid")) {
            words = new WordsSearch(node, requests, index, setting, spec, sortsAll() ? sort : List.of());
            return words.find(given.size());
        }
        PlainActionFuture<Rounds.Found> found = PlainActionFuture.newFuture();
        new Rounds(node, new LangshiftQueryBuilder.Target(facts, null), new SearchRequest(facts.index), spec).find(requests.client, found);
        near = found.actionGet();
        return near.entries().subList(0, Math.min(given.size(), near.entries().size()));
    }

    // Sorts.

    /** Whether a sort is of all that match; else it is of the hits that were found. */
    private boolean sortsAll() {
        Setting setting = choice.setting();
        return setting.mode().equals("lexical") && setting.preference() == 0 && !setting.onePerGroup();
    }

    private SortBuilder<?> sorted(String text) {
        int colon = text.lastIndexOf(':');
        boolean ordered = colon > 0 && Set.of("asc", "desc").contains(text.substring(colon + 1));
        SortOrder order = ordered && text.endsWith(":desc") ? SortOrder.DESC : SortOrder.ASC;
        String field = fields.exact(ordered ? text.substring(0, colon) : text, "sort", true);
        return SortBuilders.fieldSort(field).order(order).missing("_last");
    }

    /** Hits in the server's order; those with equal values stay in theirs. */
    private List<Entry> sorted(List<Entry> found) {
        Map<String, Integer> places = new HashMap<>();
        found.forEach(one -> places.put(one.id, places.size()));
        SearchSourceBuilder body = new SearchSourceBuilder().size(found.size()).fetchSource(false).query(among(places.keySet()));
        sort.forEach(body::sort);
        List<Entry> made = new ArrayList<>();
        List<Integer> equal = new ArrayList<>();
        Object[] before = null;
        for (SearchHit hit : requests.ask(body).getHits()) {
            if (before != null && !Arrays.deepEquals(before, hit.getSortValues())) {
                equal.stream().sorted().forEach(place -> made.add(found.get(place)));
                equal.clear();
            }
            before = hit.getSortValues();
            equal.add(places.get(hit.getId()));
        }
        equal.stream().sorted().forEach(place -> made.add(found.get(place)));
        return made;
    }

    /** The query that the entries of these ids match, all with the same score. */
    static QueryBuilder among(Collection<String> ids) {
        return QueryBuilders.boolQuery().filter(QueryBuilders.termsQuery("_id", ids));
    }

    /** The query that all entries of documents match: the documents themselves, or their chunks. */
    static QueryBuilder ofDocuments(IndexFacts facts, Collection<String> ids) {
        QueryBuilder themselves = QueryBuilders.termsQuery("_id", ids);
        if (facts.parent == null) {
            return themselves;
        }
        // One that names no document is one for itself.
        QueryBuilder nameless = QueryBuilders.boolQuery().filter(themselves).mustNot(QueryBuilders.existsQuery(facts.parent));
        return QueryBuilders.boolQuery().should(QueryBuilders.termsQuery(facts.parent, ids)).should(nameless).minimumShouldMatch(1);
    }

    // What belongs to hits.

    /** Document -> further chunks of it, best first. */
    private Map<String, List<Entry>> passages(List<Entry> found) {
        List<String> documents = found.stream().map(one -> (String) one.documentKey()).toList();
        List<Entry> scored = words != null ? words.entries(documents, filter)
            : exact(near.spec(), ShardIndex.all(ofDocuments(facts, documents), filter), LangshiftQueryBuilder.MOST);
        Set<String> shown = Set.copyOf(found.stream().map(one -> one.id).toList());
        Map<String, List<Entry>> made = new HashMap<>();
        for (Entry one : Entry.ranked(scored)) {
            List<Entry> of = made.computeIfAbsent((String) one.documentKey(), key -> new ArrayList<>());
            if (!shown.contains(one.id) && of.size() < given.passages()) {
                of.add(one);
            }
        }
        return made;
    }

    /** What matches, with the scores that a search gives it; not what has no vector. */
    private List<Entry> exact(SearchSpec of, QueryBuilder which, int size) {
        if (size == 0) {
            return List.of();
        }
        QueryBuilder query = new LangshiftQueryBuilder(node, of.with(Mode.EXACT).with(which));
        List<Entry> made = Rounds.entries(facts, requests.ask(Rounds.ranking(facts, query, size, false)));
        made.removeIf(one -> one.score < 0);
        return made;
    }

    private void explain(List<Entry> found, SearchAnswer answer) throws IOException {
        if (choice.setting().mode().equals("anchored")) {
            tellLegs(found);
        }
        answer.effects = ShiftEffect.of(requests, node, facts, spec, found);
        answer.tellUnknownShifts(name);
    }

    /** Tells what each part of the score says of the hits, ranked among these. */
    private void tellLegs(List<Entry> found) {
        List<String> ids = found.stream().map(one -> one.id).toList();
        Map<String, Entry> known = new HashMap<>();
        found.forEach(one -> known.put(one.id, one));
        QueryBuilder which = QueryBuilders.termsQuery("_id", ids);
        Map<String, List<Entry>> legs = new LinkedHashMap<>();
        legs.put("dense", Entry.ranked(exact(spec.with(Addition.NONE), which, ids.size())));
        legs.put("moved", Entry.ranked(exact(near.spec().with(Addition.NONE), which, ids.size())));
        QueryBuilder text = WordsQuery.matching(facts, spec.text(), spec.language(), List.copyOf(index.counts().keySet()));
        QueryBuilder among = QueryBuilders.boolQuery().must(text).filter(which);
        legs.put("lexical", Rounds.entries(facts, requests.ask(Rounds.ranking(facts, among, ids.size(), false))));
        found.forEach(one -> one.legs = new LinkedHashMap<>());
        legs.forEach((leg, ranked) -> {
            for (int i = 0; i < ranked.size(); i++) {
                known.get(ranked.get(i).id).legs.put(leg, new Leg(ranked.get(i).score, i + 1));
            }
        });
    }
}
