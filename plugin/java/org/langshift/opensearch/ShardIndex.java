package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;

import org.apache.lucene.index.FloatVectorValues;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.KnnVectorValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.index.VectorSimilarityFunction;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.TaskExecutor;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.opensearch.common.lucene.search.Queries;
import org.opensearch.common.lucene.search.function.CombineFunction;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.cbor.CborXContent;
import org.opensearch.core.common.bytes.BytesArray;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.xcontent.MediaType;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.index.fielddata.SortedBinaryDocValues;
import org.opensearch.index.mapper.MappedFieldType;
import org.opensearch.index.mapper.Uid;
import org.opensearch.index.query.BoolQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.index.query.QueryShardContext;
import org.opensearch.index.query.Rewriteable;
import org.opensearch.index.query.functionscore.RandomScoreFunctionBuilder;
import org.opensearch.search.internal.ContextIndexSearcher;

/** What a search asks of a shard's index, by Lucene and by the k-NN plugin. */
final class ShardIndex {

    static final int SAMPLE = 200;
    // As `retrieval/dsl.py` has it.
    private static final int MORE_IN_VIEW = 100;
    // Documents after which it is looked whether the search goes on.
    private static final int BETWEEN_CHECKS = 256;

    private final IndexFacts facts;
    private final QueryShardContext context;
    private final IndexSearcher searcher;
    /** Counts and ranks by words: the server's own searcher collects for the request alone. */
    private final IndexSearcher plain;
    private final Query visible;

    /** @param visible the documents that the searcher may see: there are no others for whatever is asked; null for all */
    ShardIndex(IndexFacts facts, QueryShardContext context, IndexSearcher searcher, Query visible) {
        this.facts = facts;
        this.visible = visible;
        // Its own: what is asked of that of the request is settled before the request is carried out, as is what time it is.
        this.context = new QueryShardContext(context);
        this.searcher = searcher;
        plain = visible == null ? new IndexSearcher(searcher.getIndexReader()) : new VisibleDocs(searcher.getIndexReader(), visible);
        plain.setSimilarity(searcher.getSimilarity());
        plain.setQueryCache(searcher.getQueryCache());
        plain.setQueryCachingPolicy(searcher.getQueryCachingPolicy());
    }

    /** All of the clauses that are none. */
    static QueryBuilder all(QueryBuilder... clauses) {
        BoolQueryBuilder made = QueryBuilders.boolQuery();
        for (QueryBuilder one : clauses) {
            if (one != null) {
                made.filter(one);
            }
        }
        return made.filter().isEmpty() ? null : made.filter().size() == 1 ? made.filter().get(0) : made;
    }

    /** The documents that a bonus favours. */
    static QueryBuilder favoured(IndexFacts facts, String language, double bonus) {
        QueryBuilder same = QueryBuilders.termQuery(facts.language, language);
        return bonus > 0 ? same : QueryBuilders.boolQuery().mustNot(same);
    }

    /** Finds the k nearest by the k-NN plugin's own query, in the order of the shard, with the score (1 + cos) / 2. */
    Callable<List<Entry>> nearestTask(float[] vector, int k, QueryBuilder filter) throws IOException {
        QueryBuilder knn = knn(vector, k, filter);
        // Within the search for neighbours, of which there would be fewer otherwise.
        Query query = lucene(visible == null ? knn : Rewriteable.rewrite(knn, context, true).filter(new LuceneQuery(visible)));
        return () -> matching(query);
    }

    /** The best by words, to be carried out beside other searches. */
    Callable<List<Entry>> bestTask(QueryBuilder words, int size) throws IOException {
        Query query = lucene(words);
        return () -> best(query, size);
    }

    /** Carries out searches side by side, as far as the server has threads for one request. */
    List<List<Entry>> together(List<Callable<List<Entry>>> searches) throws IOException {
        // A profiler knows one thread.
        boolean profiles = searcher instanceof ContextIndexSearcher own && own.getProfiler() != null;
        return (profiles ? new TaskExecutor(Runnable::run) : searcher.getTaskExecutor()).invokeAll(searches);
    }

    /** The k-NN plugin's own query, made by its form: so none of its classes is needed. */
    private QueryBuilder knn(float[] vector, int k, QueryBuilder filter) throws IOException {
        try (XContentBuilder made = XContentBuilder.builder(CborXContent.cborXContent)) {
            made.startObject().startObject("knn").startObject(facts.vector).array("vector", vector).field("k", k);
            if (filter != null) {
                made.field("filter", filter);
            }
            if (facts.setsView()) {
                made.startObject("method_parameters").field("ef_search", k + MORE_IN_VIEW).endObject();
            }
            if (facts.oversample() > 0) {
                made.startObject("rescore").field("oversample_factor", (float) facts.oversample()).endObject();
            }
            return QueryBuilders.wrapperQuery(BytesReference.bytes(made.endObject().endObject().endObject()));
        }
    }

    /** Finds the k nearest of all that matches, exactly: every one is looked at. */
    Callable<List<Entry>> scanTask(float[] vector, int k, QueryBuilder filter) throws IOException {
        Query query = lucene(filter);
        return () -> inOrder(
            exact(vector, query).stream().filter(one -> one.score >= 0).sorted(Entry.BY_SCORE).limit(k).collect(Collectors.toList())
        );
    }

    /** All that matches, in the order of the shard, scored exactly by a vector: below 0 where a document has none. */
    List<Entry> exact(float[] vector, QueryBuilder filter) throws IOException {
        return exact(vector, lucene(filter));
    }

    private List<Entry> exact(float[] vector, Query query) throws IOException {
        List<Entry> made = new ArrayList<>();
        Weight weight = searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE_NO_SCORES, 1);
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            FloatVectorValues values = leaf.reader().getFloatVectorValues(facts.vector);
            KnnVectorValues.DocIndexIterator places = values == null ? null : values.iterator();
            forEach(weight, leaf, (document, none) -> {
                int at = places == null ? -1 : places.docID() < document ? places.advance(document) : places.docID();
                // Not by their own scorer: where the graph keeps a bit of each number, that goes by the bits.
                float score = at == document ? VectorSimilarityFunction.COSINE.compare(vector, values.vectorValue(places.index())) : -1;
                made.add(new Entry(leaf.docBase + document, null, score));
            });
        }
        return made;
    }

    /** Ends a search that was cancelled, or takes longer than it may: the server's reader sees to that where terms are read. */
    private void checkCancelled() throws IOException {
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            Terms ids = leaf.reader().terms("_id");
            if (ids != null) {
                ids.iterator();
                return;
            }
        }
    }

    /** All that matches, in the order of the shard. */
    private List<Entry> matching(Query query) throws IOException {
        Weight weight = searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE, 1);
        List<Entry> found = new ArrayList<>();
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            forEach(weight, leaf, (document, scorer) -> found.add(new Entry(leaf.docBase + document, null, scorer.score())));
        }
        return found;
    }

    private interface Visitor {
        void visit(int document, Scorer scorer) throws IOException;
    }

    private void forEach(Weight weight, LeafReaderContext leaf, Visitor visitor) throws IOException {
        checkCancelled();
        Scorer scorer = weight.scorer(leaf);
        if (scorer == null) {
            return;
        }
        Bits live = leaf.reader().getLiveDocs();
        DocIdSetIterator all = scorer.iterator();
        int seen = 0;
        for (int document = all.nextDoc(); document != DocIdSetIterator.NO_MORE_DOCS; document = all.nextDoc()) {
            if (++seen % BETWEEN_CHECKS == 0) {
                checkCancelled();
            }
            if (live == null || live.get(document)) {
                visitor.visit(document, scorer);
            }
        }
    }

    private static List<Entry> inOrder(List<Entry> entries) {
        entries.sort(Comparator.comparingInt(one -> one.document));
        return entries;
    }

    /** The best by words, with their scores. */
    List<Entry> best(QueryBuilder words, int size) throws IOException {
        return best(lucene(words), size);
    }

    private List<Entry> best(Query query, int size) throws IOException {
        checkCancelled();
        List<Entry> found = new ArrayList<>();
        for (ScoreDoc one : plain.search(query, new TopScoreDocCollectorManager(size, 1)).scoreDocs) {
            found.add(new Entry(one.doc, null, one.score));
        }
        return found;
    }

    /** The documents of these ids, with these scores. */
    List<Entry> named(Map<String, Float> scores) throws IOException {
        List<Entry> found = new ArrayList<>();
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            Terms terms = leaf.reader().terms("_id");
            TermsEnum ids = terms == null ? TermsEnum.EMPTY : terms.iterator();
            Bits live = leaf.reader().getLiveDocs();
            PostingsEnum places = null;
            for (Map.Entry<String, Float> one : scores.entrySet()) {
                if (!ids.seekExact(Uid.encodeId(one.getKey()))) {
                    continue;
                }
                places = ids.postings(places, PostingsEnum.NONE);
                // What is nested in a document has its id, too, and stands before it.
                int last = -1;
                for (int at = places.nextDoc(); at != DocIdSetIterator.NO_MORE_DOCS; at = places.nextDoc()) {
                    last = live == null || live.get(at) ? at : last;
                }
                if (last >= 0) {
                    found.add(new Entry(leaf.docBase + last, one.getKey(), one.getValue()));
                }
            }
        }
        return inOrder(found);
    }

    /** How many live documents the shard has, or how many of a language. */
    int count(String language) throws IOException {
        if (language == null && visible == null && !context.getMapperService().hasNested()) {
            return searcher.getIndexReader().numDocs();
        }
        return plain.count(lucene(language == null ? QueryBuilders.matchAllQuery() : QueryBuilders.termQuery(facts.language, language)));
    }

    /** The languages of the documents; the most frequent first where there are more than there is room for. */
    List<String> languages(int room) throws IOException {
        Map<String, Integer> counts = new HashMap<>();
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            Terms terms = leaf.reader().terms(facts.language);
            TermsEnum each = terms == null ? TermsEnum.EMPTY : terms.iterator();
            for (BytesRef term = each.next(); term != null; term = each.next()) {
                counts.put(term.utf8ToString(), 0);
            }
        }
        counts.remove(Languages.UND);
        if (counts.size() <= room && visible == null) {
            return counts.keySet().stream().sorted().toList();
        }
        for (Map.Entry<String, Integer> one : counts.entrySet()) {
            one.setValue(count(one.getKey()));
        }
        counts.values().removeIf(count -> count == 0);
        Comparator<String> frequent = Comparator.comparing(counts::get, Comparator.reverseOrder());
        return counts.keySet().stream().sorted(frequent.thenComparing(Comparator.naturalOrder())).toList();
    }

    int countWords(String words, String language) throws IOException {
        return WordsQuery.count(facts, context, words, language);
    }

    /** The spread of a sample of the shard's documents, the same each time. */
    double spread() throws IOException {
        int documents = count(null);
        Double known = visible == null ? facts.spread(documents) : null;
        if (known == null) {
            List<Entry> drawn = best(sample(facts), SAMPLE);
            readLanguages(drawn);
            known = Anchors.spread(vectors(drawn));
            // Where a role hides or masks the vectors or the languages, it is another for everybody else.
            if (visible == null && drawn.stream().anyMatch(one -> !Languages.canonical(one.language).equals(Languages.UND))) {
                facts.keepSpread(known, documents);
            }
        }
        return known;
    }

    /** Documents with a vector in a random order, the same each time. */
    static QueryBuilder sample(IndexFacts facts) {
        return QueryBuilders.functionScoreQuery(
            QueryBuilders.existsQuery(facts.vector),
            new RandomScoreFunctionBuilder().seed(0).setField("_seq_no")
        ).boostMode(CombineFunction.REPLACE);
    }

    void readLanguages(List<Entry> entries) throws IOException {
        values(entries, facts.language, (one, value) -> one.language = value == null ? Languages.UND : value);
    }

    void readParents(List<Entry> entries) throws IOException {
        if (facts.parent != null) {
            values(entries, facts.parent, (one, value) -> one.parent = value);
        }
    }

    void readGroups(List<Entry> entries) throws IOException {
        for (Entry one : values(entries, facts.group, (one, value) -> one.group = value)) {
            one.group = firstGroup(one);
        }
    }

    /** The group that a document of several names first: Lucene keeps them in an order of its own. */
    private String firstGroup(Entry one) throws IOException {
        BytesRef source = searcher.storedFields().document(one.document, Set.of("_source")).getBinaryValue("_source");
        if (source == null) {
            return one.group;
        }
        return Entry.group(facts.groupSource, XContentHelper.convertToMap(new BytesArray(source), false, (MediaType) null).v2());
    }

    /** Refuses to search for groups where the documents of one cannot be asked for. */
    void requireGroups() {
        MappedFieldType type = context.fieldMapper(facts.group);
        Refused.when(
            type == null || !type.isSearchable() || !type.hasDocValues(),
            "Index " + facts.index + " cannot be searched for one document per group, because its field '" + facts.group + "' "
                + (type == null ? "is not in its mapping." : "is of type " + type.typeName() + ".")
        );
    }

    /** Reads the first value of a field of each document; tells which have several. */
    private List<Entry> values(List<Entry> entries, String field, BiConsumer<Entry, String> reader) throws IOException {
        List<Entry> several = new ArrayList<>();
        MappedFieldType type = context.fieldMapper(field);
        List<LeafReaderContext> leaves = searcher.getIndexReader().leaves();
        SortedBinaryDocValues values = null;
        int at = -1;
        for (Entry one : inOrder(new ArrayList<>(entries))) {
            int leaf = ReaderUtil.subIndex(one.document, leaves);
            if (leaf != at) {
                at = leaf;
                values = type == null ? null : context.getForField(type).load(leaves.get(leaf)).getBytesValues();
            }
            boolean there = values != null && values.advanceExact(one.document - leaves.get(leaf).docBase);
            reader.accept(one, there ? values.nextValue().utf8ToString() : null);
            if (there && values.docValueCount() > 1) {
                several.add(one);
            }
        }
        return several;
    }

    /** The vector of each document, whose language is known, as anchors have it, in the same order; null where one has none. */
    List<double[]> vectors(List<Entry> entries) throws IOException {
        List<double[]> made = new ArrayList<>();
        IndexReader reader = searcher.getIndexReader();
        for (Entry one : entries) {
            LeafReaderContext leaf = reader.leaves().get(ReaderUtil.subIndex(one.document, reader.leaves()));
            float[] stored = VectorsFetch.read(leaf.reader(), facts.vector, one.document - leaf.docBase);
            made.add(stored == null ? null : facts.plain(stored, one.language));
        }
        return made;
    }

    private Query lucene(QueryBuilder made) throws IOException {
        Query query = made == null ? new MatchAllDocsQuery() : Rewriteable.rewrite(made, context, true).toQuery(context);
        if (context.getMapperService().hasNested()) {
            query = made == null ? Queries.newNonNestedFilter() : Queries.filtered(query, Queries.newNonNestedFilter());
        }
        return visible == null ? query : Queries.filtered(query, visible);
    }
}
