package org.langshift.opensearch;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.CollectionStatistics;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.TermStatistics;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.FixedBitSet;
import org.apache.lucene.util.SmallFloat;

/** Ranks by words as if there were no other documents than those that may be seen: else scores would tell of the others. */
final class VisibleDocs extends IndexSearcher {

    private final Query visible;
    private final Map<String, CollectionStatistics> fields = new HashMap<>();
    /** The documents of each segment, those that were deleted among them, as ever where words are weighed. */
    private FixedBitSet[] seen;

    VisibleDocs(IndexReader reader, Query visible) {
        super(reader);
        this.visible = visible;
    }

    private FixedBitSet[] seen() throws IOException {
        if (seen == null) {
            Weight weight = createWeight(rewrite(visible), ScoreMode.COMPLETE_NO_SCORES, 1);
            seen = new FixedBitSet[getIndexReader().leaves().size()];
            for (LeafReaderContext leaf : getIndexReader().leaves()) {
                seen[leaf.ord] = new FixedBitSet(leaf.reader().maxDoc());
                Scorer scorer = weight.scorer(leaf);
                if (scorer != null) {
                    seen[leaf.ord].or(scorer.iterator());
                }
            }
        }
        return seen;
    }

    @Override
    public synchronized TermStatistics termStatistics(Term term, int documents, long times) throws IOException {
        long found = 0;
        PostingsEnum places = null;
        for (LeafReaderContext leaf : getIndexReader().leaves()) {
            Terms terms = leaf.reader().terms(term.field());
            TermsEnum each = terms == null ? TermsEnum.EMPTY : terms.iterator();
            if (each.seekExact(term.bytes())) {
                places = each.postings(places, PostingsEnum.NONE);
                for (int at = places.nextDoc(); at != DocIdSetIterator.NO_MORE_DOCS; at = places.nextDoc()) {
                    found += seen()[leaf.ord].get(at) ? 1 : 0;
                }
            }
        }
        // Of a term that no document holds nothing is asked.
        found = Math.max(1, found);
        return new TermStatistics(term.bytes(), found, found);
    }

    @Override
    public synchronized CollectionStatistics collectionStatistics(String field) throws IOException {
        CollectionStatistics known = fields.get(field);
        if (known == null) {
            long documents = 0, words = 0;
            for (LeafReaderContext leaf : getIndexReader().leaves()) {
                // How many words a text has, as a score has it: in few digits.
                NumericDocValues lengths = leaf.reader().getNormValues(field);
                for (int at = next(lengths); at != DocIdSetIterator.NO_MORE_DOCS; at = next(lengths)) {
                    if (seen()[leaf.ord].get(at)) {
                        documents++;
                        words += SmallFloat.byte4ToInt((byte) lengths.longValue());
                    }
                }
            }
            if (documents == 0) {
                // The field keeps no lengths, and its scores go by none.
                for (FixedBitSet of : seen()) {
                    documents += of.cardinality();
                }
            }
            documents = Math.max(1, documents);
            known = new CollectionStatistics(field, getIndexReader().maxDoc(), documents, Math.max(documents, words), documents);
            fields.put(field, known);
        }
        return known;
    }

    private static int next(NumericDocValues lengths) throws IOException {
        return lengths == null ? DocIdSetIterator.NO_MORE_DOCS : lengths.nextDoc();
    }
}
