package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;

import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.langshift.opensearch.SearchSpec.Mode;

/** The whole search of one shard, in any mode; what it finds equals that of `retrieval/modes.py`. */
final class ShardSearch {

    /** LAURA, section 2.1: of the 50 best the 5 best of each language. */
    static final int POOL = 50, OF_EACH_LANGUAGE = 5;
    // At most so many times as deep as before, and so many times as deep as it seems needed.
    private static final int DEEPEST = 4;
    private static final double MARGIN = 1.5;
    // Of more favoured documents the graph finds the nearest sooner.
    private static final int MOST_SCANNED = 5_000;

    private final IndexFacts facts;
    private final ShardIndex shard;
    private SearchSpec spec;
    /** What each document is given for words in other languages. */
    private final Map<Integer, Float> places = new HashMap<>();

    ShardSearch(SearchSpec spec, IndexFacts facts, ShardIndex shard) {
        this.spec = spec;
        this.facts = facts;
        this.shard = shard;
    }

    /** What is found, with the scores that it is ranked by; in no order. */
    List<Entry> run() throws IOException {
        resolve();
        return switch (spec.mode()) {
            case NEAREST -> near(shard.together(List.of(nearestTask())).get(0));
            case WORDS -> shard.together(byWords(ownDocuments())).stream().flatMap(List::stream).toList();
            case SAMPLE -> shard.best(ShardIndex.sample(facts), ShardIndex.SAMPLE);
            case EXACT -> exact(spec.filter());
            case GIVEN -> shard.named(spec.addition().given());
            case GROUPS -> foundGroups();
            default -> spec.onePerGroup() ? grouped() : documents();
        };
    }

    /** Makes of the mode that a calibration names what it stands for while that holds, and moves the query. */
    private void resolve() throws IOException {
        int then = spec.trust().documents();
        if (then > 0 && !Calibration.holds(then, shard.count(null))) {
            spec = spec.dense();
        }
        Refused.when(spec.mode() == Mode.HYBRID, hybrid(facts));
        if (spec.mode() == Mode.ANCHORED) {
            move();
        } else if (spec.mode() != Mode.GIVEN) {
            shard.named(spec.addition().given()).forEach(one -> places.put(one.document, one.score));
        }
    }

    static String hybrid(IndexFacts facts) {
        return "Mode auto stands for hybrid in index " + facts.index + ", by its calibration, which this query does not carry: ask for "
            + "another mode, or put it beside a query by words in a hybrid query.";
    }

    private List<Entry> documents() throws IOException {
        if (spec.mode() == Mode.BALANCED) {
            return balanced(spec.k());
        }
        return facts.parent == null ? searches(spec.k()).ranked() : enough(spec.k(), spec.size(), false);
    }

    // Dense, and what anchored is once the query was moved.

    /** What the search among all found, and that among the favoured; the latter is empty where it is not made. */
    private record Searches(List<Entry> all, List<Entry> favoured, int k) {

        /** What either found, best first. */
        List<Entry> ranked() {
            Map<Integer, Entry> union = new TreeMap<>();
            // A search among few documents scores by whole vectors where that of all goes by shorter ones.
            for (List<Entry> found : List.of(favoured, all)) {
                found.forEach(one -> union.merge(one.document, one, (other, same) -> other.score > same.score ? other : same));
            }
            return Entry.ranked(union.values());
        }

        /** How many documents or groups are in the search that found fewest, of those that may have left something out. */
        int fewest(boolean groups) {
            int few = Integer.MAX_VALUE;
            for (List<Entry> one : List.of(all, favoured)) {
                few = one.size() < k ? few : Math.min(few, Entry.firstOfEach(one, groups).size());
            }
            return few;
        }
    }

    /** What a search looks at, with the scores that it is ranked by. */
    private Searches searches(int k) throws IOException {
        Searches made = searches(k, spec.addition().both() ? spec.addition().bonus() : 0);
        score(made.all);
        score(made.favoured);
        return made;
    }

    /** The nearest of all, and those of what a bonus favours, side by side, by the cosines alone; no favoured without a bonus. */
    private Searches searches(int k, double bonus) throws IOException {
        List<Callable<List<Entry>>> searches = new ArrayList<>();
        searches.add(shard.nearestTask(spec.vector(), k, spec.filter()));
        searches.add(bonus == 0 ? List::of : favouredTask(k, bonus));
        List<List<Entry>> found = shard.together(searches);
        for (List<Entry> one : found) {
            shard.readLanguages(one);
            shard.readParents(one);
        }
        // Faiss finds as many in each segment, and what it leaves out of one may be nearer than the last of another. Of whole
        // documents those are beyond what is asked for; of chunks all count, as many may be of one document.
        List<List<Entry>> kept = facts.parent == null ? found : found.stream().map(one -> nearest(one, k)).toList();
        return new Searches(kept.get(0), kept.get(1), k);
    }

    private static List<Entry> nearest(List<Entry> found, int k) {
        return found.size() <= k ? found : Entry.ranked(found).subList(0, k);
    }

    private Callable<List<Entry>> favouredTask(int k, double bonus) throws IOException {
        QueryBuilder filter = ShardIndex.all(spec.filter(), ShardIndex.favoured(facts, spec.language(), bonus));
        boolean few = bonus > 0 && facts.keepsWholeVectors() && shard.count(spec.language()) <= MOST_SCANNED;
        return few ? shard.scanTask(spec.vector(), k, filter) : shard.nearestTask(spec.vector(), k, filter);
    }

    /** All that matches a filter. */
    private List<Entry> exact(QueryBuilder filter) throws IOException {
        List<Entry> found = shard.exact(spec.vector(), filter);
        shard.readLanguages(found);
        shard.readParents(found);
        score(found);
        return found;
    }

    private void score(List<Entry> entries) {
        Entry.favour(entries, spec.language(), spec.addition().bonus());
        for (Entry one : entries) {
            one.score = one.score < 0 ? one.score : (float) ((double) one.score + places.getOrDefault(one.document, 0f));
        }
    }

    /** Searches deeper and deeper, until there are as many documents or groups as are wanted, or no more of them. */
    private List<Entry> enough(int k, int wanted, boolean groups) throws IOException {
        while (true) {
            Searches made = searches(k);
            if (groups) {
                shard.readGroups(made.all);
                shard.readGroups(made.favoured);
            }
            List<Entry> ranked = made.ranked();
            int few = made.fewest(groups);
            if (groups && facts.parent == null) {
                // Of whole documents the best count, whichever search has found them.
                ranked = ranked.subList(0, Math.min(ranked.size(), spec.trust().strength() == 0 ? k : 2 * k));
                few = ranked.size() < k ? Integer.MAX_VALUE : Entry.firstOfEach(ranked, true).size();
            }
            if (few >= wanted || k == LangshiftQueryBuilder.MOST) {
                return Entry.firstOfEach(ranked, groups);
            }
            k = deeper(k, wanted, few);
        }
    }

    static int deeper(int k, int wanted, int few) {
        double times = Math.min(DEEPEST, MARGIN * wanted / Math.max(1, few));
        return (int) Math.min(LangshiftQueryBuilder.MOST, Math.ceil(k * times));
    }

    private List<Entry> balanced(int k) throws IOException {
        Searches made = searches(facts.parent == null ? LangshiftQueryBuilder.LEAST_CANDIDATES : k, spec.effectivePreference());
        while (facts.parent != null && made.fewest(false) < POOL && made.k < LangshiftQueryBuilder.MOST) {
            made = searches(deeper(made.k, POOL, made.fewest(false)), spec.effectivePreference());
        }
        return balanced(made.all, made.favoured, spec);
    }

    /** The best few of each language among the best of all, and of the favoured; a document has the score of its best chunk. */
    static List<Entry> balanced(List<Entry> all, List<Entry> favoured, SearchSpec spec) {
        Map<Object, Entry> pool = new LinkedHashMap<>();
        for (List<Entry> found : List.of(all, favoured)) {
            Entry.firstOfEach(Entry.ranked(found), false).stream().limit(POOL).forEach(one -> {
                pool.putIfAbsent(one.document < 0 ? one.id : (Object) one.document, one);
            });
        }
        List<Entry> entries = new ArrayList<>(pool.values());
        Entry.favour(entries, spec.language(), spec.effectivePreference() / 2);
        List<Entry> ranked = Entry.firstOfEach(Entry.ranked(entries), false);
        return Entry.ofEachLanguage(ranked, OF_EACH_LANGUAGE);
    }

    // One document of each group.

    private List<Entry> grouped() throws IOException {
        List<Entry> found = foundGroups();
        List<String> groups = found.stream().filter(one -> one.group != null).map(one -> one.group).toList();
        if (groups.isEmpty()) {
            return found;
        }
        QueryBuilder inGroups = ShardIndex.all(QueryBuilders.termsQuery(facts.group, groups), spec.filter());
        List<Entry> members = exact(inGroups);
        shard.readGroups(members);
        return Entry.heads(found, Entry.others(found, members, spec.language()), spec.language());
    }

    /** The best document of each of the best groups; or all that is near, of which the groups are made elsewhere. */
    private List<Entry> foundGroups() throws IOException {
        shard.requireGroups();
        if (!spec.onePerGroup()) {
            return searches(spec.k()).ranked();
        }
        int k = spec.groupsDepth();
        List<Entry> found;
        if (spec.mode() == Mode.BALANCED) {
            found = balanced(k);
            shard.readGroups(found);
            found = Entry.firstOfEach(found, true);
        } else {
            found = enough(k, spec.size(), true);
        }
        return found.subList(0, Math.min(spec.size(), found.size()));
    }

    // Anchored: what may answer, and where it moves the query.

    /** What may answer the query, in its order: entries whose score is that by words, else 0. */
    private List<Entry> gather(int own) throws IOException {
        // Built one after the other, as what they are built with knows one thread, and carried out side by side.
        List<Callable<List<Entry>>> searches = new ArrayList<>();
        searches.add(nearestTask());
        searches.addAll(byWords(own));
        Map<Integer, Entry> found = new LinkedHashMap<>();
        List<List<Entry>> made = shard.together(searches);
        near(made.get(0)).forEach(one -> found.put(one.document, new Entry(one.document, null, 0)));
        made.stream().skip(1).forEach(byWords -> byWords.forEach(one -> found.put(one.document, one)));
        List<Entry> entries = new ArrayList<>(found.values());
        shard.readLanguages(entries);
        return entries;
    }

    private int ownDocuments() throws IOException {
        return spec.knowsLanguage() ? shard.count(spec.language()) : 0;
    }

    private Callable<List<Entry>> nearestTask() throws IOException {
        return shard.nearestTask(spec.vector(), LangshiftQueryBuilder.LEAST_CANDIDATES, spec.filter());
    }

    private static List<Entry> near(List<Entry> found) {
        return Entry.ranked(found).stream().limit(Anchors.NEAREST).toList();
    }

    /** The searches for the best by words in the query's language and in others. */
    private List<Callable<List<Entry>>> byWords(int own) throws IOException {
        String language = spec.language();
        List<Callable<List<Entry>>> searches = new ArrayList<>();
        QueryBuilder same = QueryBuilders.termQuery(facts.language, language);
        if (own > 0) {
            QueryBuilder words = WordsQuery.matching(facts, spec.text(), language, List.of());
            QueryBuilder filter = ShardIndex.all(spec.filter(), same);
            searches.add(shard.bestTask(QueryBuilders.boolQuery().must(words).filter(filter), Anchors.OWN));
        }
        if (shard.count(null) > own) {
            int room = WordsQuery.roomForOthers(facts, spec.text());
            List<String> others = shard.languages(room).stream().filter(tag -> !tag.equals(language)).toList();
            QueryBuilder words = WordsQuery.matching(facts, spec.text(), Languages.UND, others);
            QueryBuilder elsewhere = spec.knowsLanguage() ? QueryBuilders.boolQuery().mustNot(same) : null;
            QueryBuilder filter = ShardIndex.all(spec.filter(), elsewhere);
            searches.add(shard.bestTask(filter == null ? words : QueryBuilders.boolQuery().must(words).filter(filter), Anchors.OTHERS));
        }
        return searches;
    }

    private void move() throws IOException {
        int own = ownDocuments();
        List<Entry> gathered = gather(own);
        double spread = Double.isNaN(spec.trust().spread()) ? shard.spread() : spec.trust().spread();
        long documents = facts.split ? own : shard.count(null);
        int words = own > 0 ? shard.countWords(spec.text(), spec.language()) : 1;
        spec = spec.moved(
            gathered, shard.vectors(gathered), spread, facts, words, own, documents,
            (one, given) -> places.put(one.document, given)
        );
    }
}
