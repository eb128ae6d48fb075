package org.langshift.opensearch;

import org.apache.lucene.search.Query;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.index.query.AbstractQueryBuilder;
import org.opensearch.index.query.QueryShardContext;

/** A query of Lucene's as a part of one of the server's, on the shard alone. */
final class LuceneQuery extends AbstractQueryBuilder<LuceneQuery> {

    private final Query query;

    LuceneQuery(Query query) {
        this.query = query;
    }

    @Override
    protected Query doToQuery(QueryShardContext context) {
        return query;
    }

    @Override
    protected void doWriteTo(StreamOutput out) {
        throw new UnsupportedOperationException("It stays on its shard.");
    }

    @Override
    protected void doXContent(XContentBuilder builder, Params params) {
        throw new UnsupportedOperationException("It stays on its shard.");
    }

    @Override
    protected boolean doEquals(LuceneQuery other) {
        return query.equals(other.query);
    }

    @Override
    protected int doHashCode() {
        return query.hashCode();
    }

    @Override
    public String getWriteableName() {
        return "lucene";
    }
}
