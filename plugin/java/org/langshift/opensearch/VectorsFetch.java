package org.langshift.opensearch;

import java.io.IOException;
import java.util.List;
import java.util.Set;

import org.apache.lucene.index.FloatVectorValues;
import org.apache.lucene.index.KnnVectorValues;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.opensearch.common.document.DocumentField;
import org.opensearch.search.fetch.FetchContext;
import org.opensearch.search.fetch.FetchSubPhase;
import org.opensearch.search.fetch.FetchSubPhaseProcessor;

/** Brings the hits of a first round with their vectors, and with how many words the query has. */
final class VectorsFetch implements FetchSubPhase {

    private static final Set<SearchSpec.Mode> GATHERING = Set.of(
        SearchSpec.Mode.NEAREST, SearchSpec.Mode.WORDS, SearchSpec.Mode.SAMPLE
    );

    /** Fields of the hits. */
    static final String VECTOR = "langshift_vector", WORDS = "langshift_words";

    @Override
    public FetchSubPhaseProcessor getProcessor(FetchContext context) throws IOException {
        // What a fetch calls its query has been rewritten.
        if (context.parsedQuery() == null || !(context.parsedQuery().query() instanceof ShardQuery query)
            || !GATHERING.contains(query.spec.mode())) {
            return null;
        }
        int words = WordsQuery.count(query.facts, query.context, query.spec.text(), query.spec.language());
        return new FetchSubPhaseProcessor() {
            @Override
            public void setNextReader(LeafReaderContext reader) {}

            @Override
            public void process(HitContext hit) throws IOException {
                float[] vector = read(hit.reader(), query.facts.vector, hit.docId());
                if (vector != null) {
                    hit.hit().setDocumentField(VECTOR, new DocumentField(VECTOR, List.of(vector)));
                    hit.hit().setDocumentField(WORDS, new DocumentField(WORDS, List.of(words)));
                }
            }
        };
    }

    /** The stored vector of a document; null where it has none. */
    static float[] read(LeafReader reader, String field, int document) throws IOException {
        FloatVectorValues values = reader.getFloatVectorValues(field);
        if (values == null) {
            return null;
        }
        KnnVectorValues.DocIndexIterator places = values.iterator();
        return places.advance(document) == document ? values.vectorValue(places.index()).clone() : null;
    }
}
