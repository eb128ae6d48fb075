package org.langshift.opensearch;

import java.io.IOException;

import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.index.query.AbstractQueryBuilder;
import org.opensearch.index.query.QueryShardContext;

/** The query `langshift`: for now, all documents. */
final class LangshiftQueryBuilder extends AbstractQueryBuilder<LangshiftQueryBuilder> {

    static final String NAME = "langshift";

    private final LangshiftPlugin.Node node;

    LangshiftQueryBuilder(LangshiftPlugin.Node node) {
        this.node = node;
    }

    LangshiftQueryBuilder(StreamInput in, LangshiftPlugin.Node node) throws IOException {
        super(in);
        this.node = node;
    }

    static LangshiftQueryBuilder fromXContent(XContentParser parser, LangshiftPlugin.Node node) throws IOException {
        parser.skipChildren();
        return new LangshiftQueryBuilder(node);
    }

    @Override
    protected Query doToQuery(QueryShardContext context) {
        return new MatchAllDocsQuery();
    }

    @Override
    protected void doWriteTo(StreamOutput out) {}

    @Override
    protected void doXContent(XContentBuilder builder, Params params) throws IOException {
        builder.startObject(NAME).endObject();
    }

    @Override
    protected boolean doEquals(LangshiftQueryBuilder other) {
        return true;
    }

    @Override
    protected int doHashCode() {
        return 0;
    }

    @Override
    public String getWriteableName() {
        return NAME;
    }
}
