package org.langshift.opensearch;

import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.opensearch.index.query.QueryShardContext;
import org.opensearch.index.shard.SearchOperationListener;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.internal.SearchContext;

/**
 * Notices searches that the security plugin restricts to some of the documents.
 *
 * It puts its restriction around the query of a search, before the query phase or in the request. Our query searches all of a
 * shard by itself: within it the restriction would not hold, and hidden documents would take the places of others.
 */
final class DocumentSecurity implements SearchOperationListener {

    /** What the security plugin notes where the restriction is in the request already, as one that looks terms up must be. */
    private static final String IN_REQUEST = "_opendistro_security_filter_level_dls_done";
    private static final ThreadLocal<Search> SEARCH = new ThreadLocal<>();

    private record Search(SearchContext context, boolean restricted) {}

    private final LangshiftPlugin.Node node;

    DocumentSecurity(LangshiftPlugin.Node node) {
        this.node = node;
    }

    @Override
    public void onPreQueryPhase(SearchContext search) {
        SEARCH.set(new Search(search, node.threads.getHeader(IN_REQUEST) != null));
    }

    @Override
    public void onQueryPhase(SearchContext search, long nanos) {
        SEARCH.remove();
    }

    @Override
    public void onFailedQueryPhase(SearchContext search) {
        SEARCH.remove();
    }

    /** Refuse to go on where the search that this thread carries out is restricted; to be asked within its query phase. */
    static void requireNone() {
        Search search = SEARCH.get();
        Refused.when(
            search != null && (search.restricted || !shape(search.context.parsedQuery().query()).equals(shape(asked(search.context)))),
            "cannot be used under document-level security, which would hold around it and not within it: "
                + "use [knn], or search as a user whose roles hide no documents."
        );
    }

    /** The query of the request. */
    private static Query asked(SearchContext search) {
        SearchSourceBuilder source = search.request().source();
        // In a context of its own: that of the search may have been told not to look at the time any more.
        return source == null || source.query() == null
            ? new MatchAllDocsQuery()
            : new QueryShardContext(search.getQueryShardContext()).toQuery(source.query()).query();
    }

    /** What a query is put together of: enough to tell whether something was put around it, and the same each time. */
    private static String shape(Query query) {
        StringBuilder made = new StringBuilder();
        query.visit(new QueryVisitor() {
            @Override
            public QueryVisitor getSubVisitor(Occur occur, Query parent) {
                made.append(occur).append(parent.getClass().getName()).append('(');
                return this;
            }

            @Override
            public void visitLeaf(Query leaf) {
                made.append(leaf.getClass().getName()).append(' ');
            }
        });
        return made.toString();
    }
}
