package org.langshift.opensearch;

import java.util.Optional;

import org.opensearch.index.IndexSettings;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.search.deciders.ConcurrentSearchDecision;
import org.opensearch.search.deciders.ConcurrentSearchDecision.DecisionStatus;
import org.opensearch.search.deciders.ConcurrentSearchRequestDecider;

/** Has the segments of a shard searched side by side, as the k-NN plugin has it for its own query, which stands within ours. */
final class ConcurrentSearch extends ConcurrentSearchRequestDecider {

    static final class Factory implements ConcurrentSearchRequestDecider.Factory {
        @Override
        public Optional<ConcurrentSearchRequestDecider> create(IndexSettings settings) {
            return Optional.of(new ConcurrentSearch());
        }
    }

    private DecisionStatus status = DecisionStatus.NO_OP;

    @Override
    public void evaluateForQuery(QueryBuilder query, IndexSettings settings) {
        if (query instanceof LangshiftQueryBuilder) {
            status = DecisionStatus.YES;
        }
    }

    @Override
    public ConcurrentSearchDecision getConcurrentSearchDecision() {
        return new ConcurrentSearchDecision(status, (status == DecisionStatus.YES ? "the" : "no") + " query langshift");
    }
}
