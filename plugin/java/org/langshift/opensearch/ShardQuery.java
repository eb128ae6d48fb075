package org.langshift.opensearch;

import java.io.IOException;
import java.util.List;

import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Weight;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryShardContext;
import org.opensearch.search.query.QueryPhase;

import org.langshift.opensearch.DocumentSecurity.Restriction;

/**
 * A search of one shard as a query: it matches what that finds.
 *
 * It is carried out when the weight is made, and not in `rewrite`: where there are several shards, the server rewrites a
 * query again before it fetches the hits.
 */
final class ShardQuery extends Query {

    final SearchSpec spec;
    final IndexFacts facts;
    final QueryShardContext context;
    private List<Entry> found;
    private Object reader;

    ShardQuery(SearchSpec spec, IndexFacts facts, QueryShardContext context) {
        this.spec = spec;
        this.facts = facts;
        this.context = context;
    }

    @Override
    public Weight createWeight(IndexSearcher searcher, ScoreMode mode, float boost) throws IOException {
        QueryBuilder carried = spec.restriction();
        Restriction seen = DocumentSecurity.of(this, searcher, carried == null ? null : carried.toQuery(new QueryShardContext(context)));
        synchronized (this) {
            Object now = searcher.getIndexReader().getContext().id();
            if (found == null || reader != now) {
                try {
                    found = new ShardSearch(spec, facts, new ShardIndex(facts, context, searcher, seen.visible())).run();
                    reader = now;
                } catch (QueryPhase.TimeExceededException late) {
                    // As the server has it: what was found in time counts, and the answer says that it is late.
                    return new FoundDocs(this, List.of(), searcher, boost, seen.beside());
                }
            }
            return new FoundDocs(this, found, searcher, boost, seen.beside());
        }
    }

    @Override
    public void visit(QueryVisitor visitor) {
        visitor.visitLeaf(this);
    }

    @Override
    public String toString(String field) {
        return LangshiftQueryBuilder.NAME + "(" + spec.mode().lower() + ")";
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ShardQuery that && spec.equals(that.spec) && facts == that.facts && context == that.context;
    }

    @Override
    public int hashCode() {
        return spec.hashCode();
    }
}
