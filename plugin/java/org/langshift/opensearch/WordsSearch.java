package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.collapse.CollapseBuilder;
import org.opensearch.search.sort.SortBuilder;
import org.opensearch.search.sort.SortBuilders;

import org.langshift.opensearch.Entry.Leg;
import org.langshift.opensearch.SearchArguments.Setting;
import org.langshift.opensearch.SearchSpec.Addition;
import org.langshift.opensearch.SearchSpec.Mode;

/** Searches by words, alone or beside vectors: `lexical` and `hybrid` of `retrieval/hybrid.py`, where they are explained. */
final class WordsSearch {

    private static final int RANK_CONSTANT = 60, SCALED_OVER = 100, DEEPEST = 4;
    // What neural-search gives the lowest score of a leg, and how near scores by the graph and by a scan are.
    private static final double LOWEST = 0.001, NEAR = 5e-7, MARGIN = 1.5;

    private final LangshiftPlugin.Node node;
    private final IndexFacts facts;
    private final Requests requests;
    private final ModeChoice.Index index;
    private final Setting setting;
    /** What is asked: text, language, preference, filter and, where the mode needs one, a vector. */
    private final SearchSpec spec;
    private final List<SortBuilder<?>> sort;
    private final boolean hybrid;

    // How the scores of what was found were put together.
    private double bonus;
    private final Map<String, double[]> ranges = new HashMap<>();
    private Map<String, Float> retrieved = Map.of();
    /** How many documents or groups were wanted for each that was found, where there may be more; else 0. */
    private double missing;
    /** Of chunks that name no document the server brings only one, where it brings the best of each document alone. */
    private boolean collapses = true;

    /** @param sort by what `lexical` sorts all that match; empty for by score */
    WordsSearch(
        LangshiftPlugin.Node node, Requests requests, ModeChoice.Index index, Setting setting, SearchSpec spec, List<SortBuilder<?>> sort
    ) {
        this.node = node;
        this.facts = index.facts();
        this.requests = requests;
        this.index = index;
        this.setting = setting;
        this.spec = spec;
        this.sort = sort;
        hybrid = setting.mode().equals("hybrid");
    }

    double bonus() {
        return bonus;
    }

    /** The best documents; or groups, each by its document in the searcher's language, with the others inside it. */
    List<Entry> find(int size) throws IOException {
        if (!setting.onePerGroup() && facts.parent == null) {
            return run(Math.max(size, LangshiftQueryBuilder.LEAST_CANDIDATES), size, false);
        }
        List<Entry> found = enough(size);
        return setting.onePerGroup() ? heads(found, size) : found;
    }

    /** Searches deeper and deeper, until there are as many groups or documents as are wanted, or no more of them. */
    private List<Entry> enough(int size) throws IOException {
        boolean grouped = setting.onePerGroup(), apart = grouped && facts.parent == null;
        int least = Math.max(LangshiftQueryBuilder.LEAST_CANDIDATES, grouped ? 2 * size : size);
        int depth = Math.min(least, LangshiftQueryBuilder.MOST);
        while (true) {
            int wide = hybrid ? Math.min(LangshiftQueryBuilder.MOST, 2 * depth * facts.shards) : depth;
            List<Entry> found = run(depth, apart ? wide : size, grouped && !apart);
            if (facts.parent != null && collapses && found.stream().anyMatch(one -> one.parent == null)) {
                collapses = false;
                continue;
            }
            double lacks = missing;
            if (apart && found.size() >= depth) {
                lacks = (double) size / Entry.firstOfEach(found, true).size();
            }
            if (lacks <= 1 || depth == LangshiftQueryBuilder.MOST) {
                return found;
            }
            depth = (int) Math.min(LangshiftQueryBuilder.MOST, Math.ceil(depth * Math.min(DEEPEST, MARGIN * lacks)));
        }
    }

    private List<Entry> run(int depth, int size, boolean groups) throws IOException {
        return hybrid || beta() != 0 ? fused(depth, size, groups) : plain(depth, size, groups);
    }

    private double beta() {
        return spec.effectivePreference();
    }

    private boolean favours(Entry one) {
        return beta() != 0 && one.language.equals(spec.language()) == beta() > 0;
    }

    /** The search for the words among what matches the filter and some clauses. */
    private QueryBuilder words(QueryBuilder... clauses) {
        QueryBuilder words = WordsQuery.matching(facts, spec.text(), spec.language(), List.copyOf(index.counts().keySet()));
        QueryBuilder filter = ShardIndex.all(clauses);
        return filter == null ? words : QueryBuilders.boolQuery().must(words).filter(filter);
    }

    private SearchSourceBuilder body(QueryBuilder query, int size) {
        return Rounds.ranking(facts, query, size, setting.onePerGroup());
    }

    private List<Entry> plain(int depth, int size, boolean groups) {
        boolean chunks = facts.parent != null;
        int wide = chunks && (groups || !collapses) ? Math.max(size, depth) : size;
        SearchSourceBuilder body = body(words(spec.filter()), wide);
        if (chunks && collapses) {
            body.collapse(new CollapseBuilder(facts.parent));
        }
        if (!sort.isEmpty()) {
            sort.forEach(body::sort);
            // Of chunks of one document, which are alike in the field, the best by words comes first.
            body.sort(SortBuilders.scoreSort()).trackScores(true);
        }
        List<Entry> found = Rounds.entries(facts, requests.ask(body));
        rank("lexical", found);
        missing = missing(List.of(found), found.size() >= wide, size, groups);
        return best(found, size, groups);
    }

    private static List<Entry> best(List<Entry> found, int size, boolean groups) {
        List<Entry> first = Entry.firstOfEach(found, groups);
        return first.subList(0, Math.min(size, first.size()));
    }

    private static void rank(String leg, List<Entry> found) {
        for (int i = 0; i < found.size(); i++) {
            found.get(i).legs = Map.of(leg, new Leg(found.get(i).score, i + 1));
        }
    }

    /** How many were wanted for each that is in these searches together, where one of them may have left something out. */
    private double missing(List<List<Entry>> searches, boolean cut, int size, boolean groups) {
        List<Entry> together = new ArrayList<>();
        searches.forEach(together::addAll);
        int few = best(together, size, groups).size();
        return facts.parent != null && cut && few < size ? (double) size / Math.max(1, few) : 0;
    }

    // Both legs, and what is favoured.

    /** What one leg found: among all, best first, then what only the search among the favoured brought. */
    private record Pool(List<Entry> entries, int unfavoured) {}

    private List<Entry> fused(int depth, int size, boolean groups) throws IOException {
        boolean several = hybrid && facts.shards > 1;
        QueryBuilder favoured = beta() == 0 ? null : ShardIndex.favoured(facts, spec.language(), beta());
        List<SearchRequest> sent = new ArrayList<>();
        sent.add(requests.of(body(near(depth, spec.filter()), Math.min(LangshiftQueryBuilder.MOST, several ? depth * facts.shards : depth))));
        if (hybrid && favoured != null) {
            sent.add(requests.of(body(near(depth, ShardIndex.all(spec.filter(), favoured)), depth)));
        }
        int words = sent.size();
        SearchSourceBuilder whole = body(words(spec.filter()), depth);
        for (int shard = 0; several && shard < facts.shards; shard++) {
            sent.add(requests.of(whole).preference("_shards:" + shard));
        }
        if (!several) {
            sent.add(requests.of(whole));
        }
        if (favoured != null) {
            sent.add(requests.of(body(words(spec.filter(), favoured), depth)));
        }
        List<List<Entry>> found = requests.ask(sent).stream().map(one -> Rounds.entries(facts, one)).toList();
        int last = favoured == null ? found.size() : found.size() - 1;
        Map<String, Pool> pools = new LinkedHashMap<>();
        pools.put("dense", pool("dense", found.subList(0, 1), found.subList(1, words)));
        pools.put("lexical", pool("lexical", found.subList(words, last), found.subList(last, found.size())));
        List<Entry> ranked = fuse(pools);
        missing = lacks(found, words, last, depth, size, groups);
        retrieved = new HashMap<>();
        ranked.forEach(one -> retrieved.put(one.id, one.score));
        return best(ranked, size, groups);
    }

    /** All parts together are to find as many, and those that the preference favours, so that the best are among them. */
    private double lacks(List<List<Entry>> found, int words, int last, int depth, int size, boolean groups) {
        List<List<Entry>> all = new ArrayList<>(hybrid ? found.subList(0, 1) : List.of()), favoured = new ArrayList<>();
        all.addAll(found.subList(words, last));
        favoured.addAll(hybrid ? found.subList(1, words) : List.of());
        favoured.addAll(found.subList(last, found.size()));
        double most = 0;
        for (List<List<Entry>> searches : List.of(all, favoured)) {
            boolean cut = searches.stream().anyMatch(one -> one.size() >= depth);
            most = Math.max(most, missing(searches, cut, size, groups));
        }
        return most;
    }

    /** The nearest entries of each shard: of chunks each for itself. */
    private QueryBuilder near(int k, QueryBuilder filter) throws IOException {
        return ShardIndex.knn(facts, spec.vector(), k, filter, node.contents);
    }

    private static Pool pool(String leg, List<List<Entry>> parts, List<List<Entry>> favoured) {
        List<Entry> all = new ArrayList<>(), more = new ArrayList<>();
        parts.forEach(all::addAll);
        all = Entry.ranked(all);
        rank(leg, all);
        Set<String> known = new HashSet<>();
        all.forEach(one -> known.add(one.id));
        favoured.forEach(one -> one.stream().filter(entry -> !known.contains(entry.id)).forEach(more::add));
        // What only the search among the favoured brought has no rank among all.
        more.forEach(one -> one.legs = Map.of(leg, new Leg(one.score, null)));
        int unfavoured = all.size();
        all.addAll(Entry.ranked(more));
        return new Pool(all, unfavoured);
    }

    /** All entries, best first. */
    private List<Entry> fuse(Map<String, Pool> pools) {
        ranges.clear();
        pools.forEach((leg, pool) -> {
            if (pool.unfavoured > 0) {
                double[] scores = scores(leg, pool);
                ranges.put(leg, new double[] { scores[scores.length - 1], scores[0] });
            }
        });
        Map<String, Entry> all = new LinkedHashMap<>();
        Map<String, Map<String, Leg>> plain = new LinkedHashMap<>();
        pools.forEach((leg, pool) -> {
            for (int i = 0; i < pool.entries.size(); i++) {
                Entry one = pool.entries.get(i);
                Map<String, Leg> legs = new LinkedHashMap<>(all.containsKey(one.id) ? all.get(one.id).legs : Map.of());
                legs.putAll(one.legs);
                if (i < pool.unfavoured) {
                    plain.computeIfAbsent(one.id, id -> new LinkedHashMap<>()).putAll(one.legs);
                }
                all.computeIfAbsent(one.id, id -> one).legs = legs;
            }
        });
        if (!hybrid) {
            all.values().removeIf(one -> !one.legs.containsKey("lexical"));
        }
        Map<String, Double> base = new HashMap<>();
        all.forEach((id, one) -> base.put(id, !hybrid ? base(one.legs) : plain.containsKey(id) ? base(plain.get(id)) : 0));
        double[] scale = hybrid ? plain.keySet().stream().mapToDouble(base::get).map(one -> -one).sorted().map(one -> -one).toArray()
            : scores("lexical", pools.get("lexical"));
        bonus = Math.copySign(bonus(scale, scores("dense", pools.get("dense"))), beta());
        Map<String, Double> made = new HashMap<>();
        all.forEach((id, one) -> made.put(id, base.get(id) + (favours(one) ? Math.abs(bonus) : 0)));
        List<Entry> ranked = new ArrayList<>(all.values());
        // Of equal ones the nearest comes first.
        ranked.sort(
            Comparator.comparingDouble((Entry one) -> -made.get(one.id))
                .thenComparingDouble(one -> one.legs.containsKey("dense") ? -one.legs.get("dense").score() : 0)
        );
        ranked.forEach(one -> one.score = made.get(one.id).floatValue());
        return ranked;
    }

    private static double[] scores(String leg, Pool pool) {
        return pool.entries.subList(0, pool.unfavoured).stream().mapToDouble(one -> one.legs.get(leg).score()).toArray();
    }

    /** What favoured documents are given: as much of the scores' range as the preference is of the cosines'. */
    private double bonus(double[] own, double[] dense) {
        int last = Math.min(own.length, SCALED_OVER) - 1, of = Math.min(dense.length, SCALED_OVER) - 1;
        if (last < 0 || of < 0 || dense[0] == dense[of]) {
            return 0;
        }
        return Math.abs(beta()) * (own[0] - own[last]) / (2 * (dense[0] - dense[of]));
    }

    /** The mode's score before any bonus. */
    private double base(Map<String, Leg> legs) {
        if (!hybrid) {
            return legs.get("lexical").score();
        }
        double sum = 0;
        for (Map.Entry<String, Leg> one : legs.entrySet()) {
            double share = one.getKey().equals("lexical") ? setting.lexicalWeight() : 1 - setting.lexicalWeight();
            if (setting.fusion().equals("rrf")) {
                sum += one.getValue().rank() == null ? 0 : share / (RANK_CONSTANT + one.getValue().rank());
            } else if (ranges.containsKey(one.getKey())) {
                sum += share * normalised(one.getValue().score(), ranges.get(one.getKey()));
            }
        }
        return sum;
    }

    private static double normalised(double score, double[] range) {
        double margin = NEAR * Math.max(1, Math.abs(range[0]));
        if (score < range[0] - margin) {
            return 0;
        }
        if (range[0] == range[1]) {
            return 1;
        }
        return score <= range[0] + margin ? LOWEST : (score - range[0]) / (range[1] - range[0]);
    }

    // What was not found, scored as it would have been.

    /** Whether only the run can tell what the legs found: by ranks, or where each shard found for itself. */
    private boolean needsRun() {
        return hybrid && (setting.fusion().equals("rrf") || facts.shards > 1);
    }

    private List<Entry> heads(List<Entry> all, int size) {
        List<Entry> first = best(all, size, true);
        Set<Object> keys = new HashSet<>();
        first.forEach(one -> keys.add(one.groupKey()));
        List<Entry> found = all.stream().filter(one -> keys.contains(one.groupKey())).toList();
        List<String> groups = first.stream().filter(one -> one.group != null).map(one -> one.group).toList();
        if (groups.isEmpty()) {
            return Entry.heads(found, List.of(), spec.language());
        }
        QueryBuilder members = ShardIndex.all(QueryBuilders.termsQuery(facts.group, groups), spec.filter());
        List<Entry> inside = Rounds.entries(facts, requests.ask(body(members, LangshiftQueryBuilder.MOST)));
        inside.forEach(one -> one.score = -1);
        Map<Object, Entry> best = new HashMap<>();
        List<String> documents = inside.stream().map(Entry::documentKey).map(String::valueOf).distinct().toList();
        Entry.ranked(entries(documents, spec.filter())).forEach(one -> best.putIfAbsent(one.documentKey(), one));
        for (int i = 0; i < inside.size(); i++) {
            Entry known = best.get(inside.get(i).documentKey());
            if (known != null) {
                inside.set(i, known);
            }
        }
        return Entry.heads(found, Entry.others(found, inside, spec.language()), spec.language());
    }

    /** The entries of documents that match the filter, with the scores that the search gives them; not those that match nothing. */
    List<Entry> entries(Collection<String> documents, QueryBuilder filter) {
        if (documents.isEmpty()) {
            return List.of();
        }
        QueryBuilder among = SearchExecution.ofDocuments(facts, documents);
        List<SearchRequest> sent = new ArrayList<>();
        sent.add(requests.of(body(words(filter, among), LangshiftQueryBuilder.MOST)));
        if (hybrid) {
            SearchSpec exact = spec.with(Mode.EXACT).with(Addition.NONE).with(ShardIndex.all(filter, among));
            sent.add(requests.of(body(new LangshiftQueryBuilder(node, exact), LangshiftQueryBuilder.MOST)));
        }
        Map<String, Entry> made = new LinkedHashMap<>();
        List<SearchResponse> answers = requests.ask(sent);
        for (int i = 0; i < answers.size(); i++) {
            String leg = i == 0 ? "lexical" : "dense";
            List<Entry> found = Rounds.entries(facts, answers.get(i));
            found.removeIf(one -> one.score < 0);
            for (Entry one : found) {
                Map<String, Leg> legs = new LinkedHashMap<>(made.containsKey(one.id) ? made.get(one.id).legs : Map.of());
                legs.put(leg, new Leg(one.score, null));
                made.computeIfAbsent(one.id, id -> one).legs = legs;
            }
        }
        for (Entry one : made.values()) {
            double base = needsRun() ? 0 : base(one.legs);
            Float known = needsRun() ? retrieved.get(one.id) : null;
            one.score = known != null ? known : (float) (base + (favours(one) ? Math.abs(bonus) : 0));
            // They say nothing of what the search found.
            one.legs = Map.of();
        }
        return new ArrayList<>(made.values());
    }
}
