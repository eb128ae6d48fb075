package org.langshift.opensearch;

import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;

import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.index.query.BoolQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.index.query.QueryShardContext;
import org.opensearch.index.shard.SearchOperationListener;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.internal.ReaderContext;
import org.opensearch.search.internal.SearchContext;

/**
 * Finds out to which documents the security plugin restricts a search.
 *
 * It puts its restriction around the query of a search: on each shard, before the query phase, or in the request, where that looks
 * terms up. Our query searches all of a shard by itself, so the restriction has to hold within it, too.
 */
final class DocumentSecurity implements SearchOperationListener {

    /** What the security plugin notes where the restriction is in the request. */
    private static final String IN_REQUEST = "_opendistro_security_filter_level_dls_done", USER = "_opendistro_security_user";
    private static final String KEPT = "langshift_restriction_", OURS = ShardQuery.class.getName();
    /** By the reader, which each search has of its own where the security plugin is; else by the searcher. */
    private static final Map<Object, Phase> PHASES = Collections.synchronizedMap(new WeakHashMap<>());

    /**
     * A phase of a search.
     *
     * @param fetches whether it brings what was found: then the restriction is no longer around the query
     * @param inRequest whether the restriction is in the request
     * @param user who searches; null where nobody is known
     */
    private record Phase(WeakReference<SearchContext> search, boolean fetches, boolean inRequest, Object user) {}

    /**
     * What a search of a shard may see.
     *
     * @param visible the documents; null for all
     * @param beside what is added to the scores of our query, where that is all of the search that is restricted
     */
    record Restriction(Query visible, List<Query> beside) {}

    private final Node node;

    DocumentSecurity(Node node) {
        this.node = node;
    }

    @Override
    public void onPreQueryPhase(SearchContext search) {
        note(search, false);
    }

    @Override
    public void onQueryPhase(SearchContext search, long nanos) {
        // A query whose score is not asked for is not carried out before its name is.
        Phase phase = phase(search.searcher());
        Query whole = search.parsedQuery() == null ? null : search.parsedQuery().query();
        if (whole != null && phase != null && phase.user != null && !phase.fetches && shape(whole).contains(OURS)) {
            keep(phase.user, search.readerContext(), around(whole, shape(asked(search))));
        }
    }

    @Override
    public void onPreFetchPhase(SearchContext search) {
        // Of a single shard both phases have the same search.
        if (phase(search.searcher()) == null) {
            note(search, true);
        }
    }

    private void note(SearchContext search, boolean fetches) {
        Object user = node.threads.getTransient(USER);
        boolean inRequest = node.threads.getHeader(IN_REQUEST) != null;
        Object key = user == null ? search.searcher() : search.searcher().getIndexReader();
        PHASES.put(key, new Phase(new WeakReference<>(search), fetches, inRequest, user));
    }

    private static Phase phase(IndexSearcher searcher) {
        Phase found = PHASES.get(searcher);
        return found != null ? found : PHASES.get(searcher.getIndexReader());
    }

    /** The restriction that a request carries; null where it carries none. */
    static QueryBuilder restriction(Node node, SearchRequest request) {
        if (node.threads.getHeader(IN_REQUEST) == null) {
            return null;
        }
        boolean known = request.source() != null && request.source().query() instanceof BoolQueryBuilder around
            && around.must().size() <= 1 && around.filter().isEmpty() && around.mustNot().isEmpty() && !around.should().isEmpty();
        refuse(!known);
        BoolQueryBuilder made = QueryBuilders.boolQuery().minimumShouldMatch(1);
        ((BoolQueryBuilder) request.source().query()).should().forEach(made::should);
        return made;
    }

    /** What was asked of a request that may carry a restriction around it. */
    static QueryBuilder within(SearchSourceBuilder source, QueryBuilder restriction) {
        boolean around = restriction != null && source.query() instanceof BoolQueryBuilder whole && whole.must().size() == 1;
        return around ? ((BoolQueryBuilder) source.query()).must().get(0) : source.query();
    }

    /**
     * What a search of a shard may see, asked when a query is about to be carried out.
     *
     * @param carried the restriction that is in the request; null for none
     */
    static Restriction of(ShardQuery query, IndexSearcher searcher, Query carried) {
        Phase phase = phase(searcher);
        SearchContext search = phase == null ? null : phase.search.get();
        if (search == null) {
            // No search: the reader holds what may be seen and no more.
            return new Restriction(carried, List.of());
        }
        // Beside suggestions it restricts the reader, whose documents are not all that counts.
        refuse(phase.inRequest && carried == null || phase.user != null && search.suggest() != null);
        Query whole = search.parsedQuery().query();
        Query visible = carried != null ? carried : phase.fetches ? kept(phase.user, search) : around(whole, shape(asked(search)));
        if (visible == null) {
            return new Restriction(null, List.of());
        }
        refuse(shape(visible).contains(OURS));
        return new Restriction(visible, beside(whole, query));
    }

    /** What was put around the query that was asked; null where nothing was. */
    private static Query around(Query whole, String asked) {
        BooleanQuery.Builder visible = new BooleanQuery.Builder();
        Query within = whole;
        while (!shape(within).equals(asked)) {
            if (within instanceof BoostQuery boosted) {
                within = boosted.getQuery();
                continue;
            }
            refuse(!(within instanceof BooleanQuery several && several.getClauses(Occur.MUST).size() == 1));
            BooleanQuery several = (BooleanQuery) within;
            BooleanQuery.Builder rest = new BooleanQuery.Builder().setMinimumNumberShouldMatch(several.getMinimumNumberShouldMatch());
            several.clauses().stream().filter(one -> one.occur() != Occur.MUST).forEach(rest::add);
            visible.add(rest.build(), Occur.FILTER);
            within = several.getClauses(Occur.MUST).iterator().next();
        }
        List<BooleanClause> found = visible.build().clauses();
        return found.isEmpty() ? null : found.size() == 1 ? found.get(0).query() : visible.build();
    }

    /** What a restriction adds to the score of each document that matches our query; nothing where others match, too. */
    private static List<Query> beside(Query whole, ShardQuery query) {
        boolean around = whole instanceof BooleanQuery several && several.getClauses(Occur.MUST).stream().anyMatch(one -> adds(one, query));
        return around ? List.copyOf(((BooleanQuery) whole).getClauses(Occur.SHOULD)) : List.of();
    }

    /** Whether what matches matches our query, too, whose score is a part of its score. */
    private static boolean adds(Query whole, ShardQuery query) {
        return whole == query || whole instanceof BoostQuery boosted && boosted.getQuery() == query
            || whole instanceof BooleanQuery several && several.getClauses(Occur.MUST).stream().anyMatch(one -> adds(one, query));
    }

    // Several users may search by one point in time.

    private static void keep(Object user, ReaderContext context, Query visible) {
        synchronized (context) {
            context.putInContext(KEPT + user, Optional.ofNullable(visible));
        }
    }

    private static Query kept(Object user, SearchContext search) {
        if (user == null) {
            return null;
        }
        synchronized (search.readerContext()) {
            Optional<Query> found = search.readerContext().getFromContext(KEPT + user);
            refuse(found == null);
            return found.orElse(null);
        }
    }

    private static void refuse(boolean unfit) {
        Refused.when(
            unfit,
            "cannot tell which documents the search may see under document-level security: use [knn], or search as a user whose roles "
                + "hide no documents."
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
