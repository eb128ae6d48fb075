package org.langshift.opensearch;

import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Explanation;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;

/** The documents of a shard that were found, with their scores, as Lucene collects them. */
final class FoundDocs extends Weight {

    private final int[] documents;
    private final float[] scores;

    /** @param beside what is added to these scores, so that they are to be less by as much; each document matches one at least */
    FoundDocs(Query query, List<Entry> found, IndexSearcher searcher, float boost, List<Query> beside) throws IOException {
        super(query);
        List<Entry> ordered = found.stream().sorted(Comparator.comparingInt(one -> one.document)).toList();
        documents = ordered.stream().mapToInt(one -> one.document).toArray();
        scores = new float[documents.length];
        for (int i = 0; i < scores.length; i++) {
            scores[i] = ordered.get(i).score * boost;
        }
        for (Query one : beside) {
            take(searcher.createWeight(searcher.rewrite(one), ScoreMode.COMPLETE, 1), searcher.getIndexReader().leaves());
        }
    }

    private void take(Weight weight, List<LeafReaderContext> leaves) throws IOException {
        for (LeafReaderContext leaf : leaves) {
            Scorer scorer = weight.scorer(leaf);
            for (int i = from(leaf.docBase); scorer != null && i < from(leaf.docBase + leaf.reader().maxDoc()); i++) {
                DocIdSetIterator all = scorer.iterator();
                int document = documents[i] - leaf.docBase;
                if ((all.docID() < document ? all.advance(document) : all.docID()) == document) {
                    scores[i] -= scorer.score();
                }
            }
        }
    }

    @Override
    public Explanation explain(LeafReaderContext leaf, int document) {
        int place = Arrays.binarySearch(documents, leaf.docBase + document);
        return place < 0
            ? Explanation.noMatch("not among what the query langshift finds")
            : Explanation.match(scores[place], "what the query langshift gives it");
    }

    @Override
    public ScorerSupplier scorerSupplier(LeafReaderContext leaf) {
        int first = from(leaf.docBase), end = from(leaf.docBase + leaf.reader().maxDoc());
        return first == end ? null : new DefaultScorerSupplier(new Found(leaf.docBase, first, end));
    }

    @Override
    public int count(LeafReaderContext leaf) {
        return from(leaf.docBase + leaf.reader().maxDoc()) - from(leaf.docBase);
    }

    // Another reader has other documents in these places.
    @Override
    public boolean isCacheable(LeafReaderContext leaf) {
        return false;
    }

    /** The place of the first document from this one on. */
    private int from(int document) {
        int place = Arrays.binarySearch(documents, document);
        return place < 0 ? -place - 1 : place;
    }

    private final class Found extends Scorer {
        private final int base, first, end;
        private int at;

        Found(int base, int first, int end) {
            this.base = base;
            this.first = first;
            this.end = end;
            at = first - 1;
        }

        private final DocIdSetIterator iterator = new DocIdSetIterator() {
            @Override
            public int docID() {
                return at < first ? -1 : at >= end ? NO_MORE_DOCS : documents[at] - base;
            }

            @Override
            public int nextDoc() {
                at++;
                return docID();
            }

            @Override
            public int advance(int target) throws IOException {
                return slowAdvance(target);
            }

            @Override
            public long cost() {
                return end - first;
            }
        };

        @Override
        public int docID() {
            return iterator.docID();
        }

        @Override
        public DocIdSetIterator iterator() {
            return iterator;
        }

        @Override
        public float score() {
            return scores[at];
        }

        @Override
        public float getMaxScore(int upTo) {
            float most = Float.NEGATIVE_INFINITY;
            for (int i = Math.max(first, at); i < end && documents[i] - base <= upTo; i++) {
                most = Math.max(most, scores[i]);
            }
            return most == Float.NEGATIVE_INFINITY ? 0 : most;
        }
    }
}
