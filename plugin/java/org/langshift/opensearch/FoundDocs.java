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
import org.apache.lucene.util.BitSetIterator;
import org.apache.lucene.util.FixedBitSet;

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
            DocIdSetIterator all = scorer == null ? DocIdSetIterator.empty() : scorer.iterator();
            for (int i = from(leaf.docBase); i < from(leaf.docBase + leaf.reader().maxDoc()); i++) {
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
        if (first == end) {
            return null;
        }
        FixedBitSet there = new FixedBitSet(leaf.reader().maxDoc());
        float most = scores[first];
        for (int i = first; i < end; i++) {
            there.set(documents[i] - leaf.docBase);
            most = Math.max(most, scores[i]);
        }
        return new DefaultScorerSupplier(new Found(leaf.docBase, new BitSetIterator(there, end - first), most));
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
        private final int base;
        private final DocIdSetIterator all;
        private final float most;

        Found(int base, DocIdSetIterator all, float most) {
            this.base = base;
            this.all = all;
            this.most = most;
        }

        @Override
        public int docID() {
            return all.docID();
        }

        @Override
        public DocIdSetIterator iterator() {
            return all;
        }

        @Override
        public float score() {
            return scores[Arrays.binarySearch(documents, base + all.docID())];
        }

        @Override
        public float getMaxScore(int upTo) {
            return most;
        }
    }
}
