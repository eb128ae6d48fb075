package org.langshift.opensearch;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

import org.apache.lucene.search.Query;
import org.opensearch.action.IndicesRequest;
import org.opensearch.action.search.SearchContextId;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.cluster.ClusterState;
import org.opensearch.cluster.metadata.IndexMetadata;
import org.opensearch.cluster.node.DiscoveryNode;
import org.opensearch.cluster.routing.IndexShardRoutingTable;
import org.opensearch.cluster.routing.ShardRouting;
import org.opensearch.common.CheckedSupplier;
import org.opensearch.common.SetOnce;
import org.opensearch.common.xcontent.XContentFactory;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.XContentType;
import org.opensearch.core.ParseField;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.common.ParsingException;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.index.Index;
import org.opensearch.core.xcontent.ContextParser;
import org.opensearch.core.xcontent.ObjectParser;
import org.opensearch.core.xcontent.ToXContent;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.index.query.AbstractQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.index.query.QueryCoordinatorContext;
import org.opensearch.index.query.QueryRewriteContext;
import org.opensearch.index.query.QueryShardContext;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.internal.AliasFilter;
import org.opensearch.search.internal.ShardSearchRequest;

import org.langshift.opensearch.SearchSpec.Addition;
import org.langshift.opensearch.SearchSpec.Mode;
import org.langshift.opensearch.SearchSpec.Trust;

/** The query `langshift`: parsed, resolved at the coordinating node by what the index says of itself, sent to the shards. */
final class LangshiftQueryBuilder extends AbstractQueryBuilder<LangshiftQueryBuilder> {

    static final String NAME = "langshift";
    static final int LEAST_CANDIDATES = 100, MOST = 10_000;
    /** What the form in which nodes send it to one another is called; another one is not read. */
    static final int FORM = 1;
    private static final int MOST_CHARACTERS = 10_000, USUAL_SIZE = 10;
    private static final double MOST_PREFERENCE = 2;
    private static final List<String> MODES = List.of("auto", "dense", "balanced", "anchored");
    /** Whether this thread is within one: as every step searches with the filter, each further one would cost many times as much. */
    private static final ThreadLocal<Boolean> WITHIN = ThreadLocal.withInitial(() -> false);
    private static final String ALONE = "cannot stand within another query langshift, or in the filter of an alias that one searches.";

    final SearchSpec spec;
    private final Node node;
    /** What was asked for, which is what can be printed and read again. */
    private final SearchSpec asked;
    /** What makes the vector, such as `neural`; null where none is given, or once it has. */
    private final QueryBuilder vectorQuery;
    /** The search as it goes on once what it waits for is there; null where it waits for nothing. */
    private final SetOnce<SearchSpec> next;

    private LangshiftQueryBuilder(
        Node node, SearchSpec spec, SearchSpec asked, QueryBuilder vectorQuery, SetOnce<SearchSpec> next
    ) {
        this.node = node;
        this.spec = spec;
        this.asked = asked;
        this.vectorQuery = vectorQuery;
        this.next = next;
    }

    LangshiftQueryBuilder(Node node, SearchSpec spec, SearchSpec asked) {
        this(node, spec, asked, null, null);
    }

    LangshiftQueryBuilder(StreamInput in, Node node) throws IOException {
        super(in);
        int form = in.readVInt();
        Refused.when(form != FORM, "The nodes of this cluster have versions of the plugin that do not understand one another.");
        this.node = node;
        spec = new SearchSpec(in);
        asked = spec.isResolved() ? new SearchSpec(in) : spec;
        vectorQuery = in.readOptionalNamedWriteable(QueryBuilder.class);
        next = null;
    }

    @Override
    protected void doWriteTo(StreamOutput out) throws IOException {
        out.writeVInt(FORM);
        spec.writeTo(out);
        if (spec.isResolved()) {
            asked.writeTo(out);
        }
        out.writeOptionalNamedWriteable(vectorQuery);
    }

    // Parsing.

    private static final class Given {
        String mode = "auto", text, language, name;
        List<Float> vector;
        Integer k;
        Double preference, spread;
        boolean onePerGroup;
        float boost = DEFAULT_BOOST;
        QueryBuilder filter, vectorQuery;
    }

    private static final ObjectParser<Given, Void> PARSER = new ObjectParser<>(NAME, Given::new);
    static {
        ContextParser<Void, QueryBuilder> inner = (parser, none) -> parseInnerQueryBuilder(parser);
        PARSER.declareString((given, value) -> given.mode = value, new ParseField("mode"));
        PARSER.declareString((given, value) -> given.text = value, new ParseField("text"));
        PARSER.declareString((given, value) -> given.language = value, new ParseField("language"));
        PARSER.declareFloatArray((given, value) -> given.vector = value, new ParseField("vector"));
        PARSER.declareInt((given, value) -> given.k = value, new ParseField("k"));
        PARSER.declareDouble((given, value) -> given.preference = value, new ParseField("prefer_language"));
        PARSER.declareDouble((given, value) -> given.spread = value, new ParseField("spread"));
        PARSER.declareBoolean((given, value) -> given.onePerGroup = value, new ParseField("one_per_group"));
        PARSER.declareObject((given, value) -> given.filter = value, inner, new ParseField("filter"));
        PARSER.declareObject((given, value) -> given.vectorQuery = value, inner, new ParseField("vector_query"));
        PARSER.declareFloat((given, value) -> given.boost = value, BOOST_FIELD);
        PARSER.declareString((given, value) -> given.name = value, NAME_FIELD);
    }

    static LangshiftQueryBuilder fromXContent(XContentParser parser, Node node) throws IOException {
        if (WITHIN.get()) {
            // The parsers around it hide any other exception behind theirs.
            throw new ParsingException(parser.getTokenLocation(), Refused.because(ALONE).getMessage());
        }
        Given given = within(() -> PARSER.parse(parser, null));
        Refused.when(!MODES.contains(given.mode), "Unknown mode [" + given.mode + "]: choose one of " + String.join(", ", MODES) + ".");
        Refused.when(
            given.preference != null && given.spread != null,
            "[prefer_language] and [spread] are mutually exclusive: give one of them."
        );
        double least = given.spread != null ? given.spread : given.preference != null ? given.preference : 0;
        Refused.when(!(least >= 0 && least <= MOST_PREFERENCE), "[prefer_language] and [spread] are numbers from 0 to 2.");
        Refused.when(given.k != null && (given.k < 1 || given.k > MOST), "[k] is a number from 1 to 10,000.");
        Refused.when(given.vector == null && given.vectorQuery == null, "needs a [vector] or a [vector_query].");
        Refused.when(
            given.vector != null && given.vectorQuery != null,
            "[vector] and [vector_query] are mutually exclusive: give one of them."
        );
        SearchSpec spec = new SearchSpec(
            Mode.valueOf(given.mode.toUpperCase(Locale.ROOT)),
            checkedText(given.text),
            checkedLanguage(given.language),
            given.vector == null ? new float[0] : checkedVector(floats(given.vector)),
            // Not -0, which is equal to 0 and hashed otherwise.
            given.spread != null ? 0 - given.spread : least,
            0,
            given.k == null ? 0 : given.k,
            given.onePerGroup,
            given.filter,
            null,
            SearchSpec.NO_TRUST,
            Addition.NONE
        );
        return new LangshiftQueryBuilder(node, spec, spec, given.vectorQuery, null).boost(given.boost).queryName(given.name);
    }

    private static <T> T within(CheckedSupplier<T, IOException> made) throws IOException {
        WITHIN.set(true);
        try {
            return made.get();
        } finally {
            WITHIN.remove();
        }
    }

    private static String checkedText(String text) {
        if (text == null) {
            return null;
        }
        String normal = Languages.normalForm(text);
        Refused.when(normal.isBlank(), "[text] is empty: give the words to search for.");
        int characters = text.codePointCount(0, text.length());
        Refused.when(
            characters > MOST_CHARACTERS,
            String.format(Locale.ROOT, "[text] has %,d characters, but at most %,d can be searched for.", characters, MOST_CHARACTERS)
        );
        return normal;
    }

    private static String checkedLanguage(String language) {
        if (language == null || language.equals(Languages.UND)) {
            return Languages.UND;
        }
        String tag = Languages.canonical(language);
        Refused.when(
            tag.equals(Languages.UND),
            "[language] is '" + language + "', which is not a valid language: use a BCP 47 tag such as th or zh-TW."
        );
        return Languages.fold(tag);
    }

    private static float[] checkedVector(float[] vector) {
        boolean zeros = true;
        float squares = 0;
        for (float one : vector) {
            Refused.when(!Float.isFinite(one), "The vector of the query has a number that is not finite as a float.");
            zeros &= one == 0;
            squares += one * one;
        }
        Refused.when(zeros, "The vector of the query is all zeros, so no document is near it.");
        Refused.when(
            squares < Float.MIN_NORMAL || squares == Float.POSITIVE_INFINITY,
            "The vector of the query is too long or too short for cosines in floats: give it length 1."
        );
        return vector;
    }

    private static float[] floats(List<? extends Number> numbers) {
        float[] made = new float[numbers.size()];
        for (int i = 0; i < made.length; i++) {
            made[i] = numbers.get(i).floatValue();
        }
        return made;
    }

    // Resolving.

    @Override
    protected QueryBuilder doRewrite(QueryRewriteContext context) throws IOException {
        Refused.when(WITHIN.get(), ALONE);
        if (next != null) {
            return next.get() == null ? this : with(next.get(), asked, null, null);
        }
        QueryCoordinatorContext coordinator = context.convertToCoordinatorContext();
        IndicesRequest request = spec.isResolved() || coordinator == null ? null : coordinator.getSearchRequest();
        SearchRequest like = request instanceof SearchRequest search ? search : request == null ? null : new SearchRequest(request.indices());
        if (like != null && spec.restriction() == null) {
            QueryBuilder restriction = DocumentSecurity.restriction(node, like);
            if (restriction != null) {
                return with(spec.restricted(restriction), asked, vectorQuery, null);
            }
        }
        QueryBuilder filter = rewritten(spec.filter(), context), restriction = rewritten(spec.restriction(), context);
        QueryBuilder vectors = vectorQuery == null || like == null ? vectorQuery : vectorQuery.rewrite(context);
        if (filter != spec.filter() || restriction != spec.restriction() || vectors != vectorQuery) {
            return with(spec.with(filter).restricted(restriction), asked, vectors, null);
        }
        // What they look up is there once all is rewritten again.
        if (like == null || context.hasAsyncActions()) {
            return this;
        }
        if (spec.vector().length == 0 && vectorQuery != null) {
            float[] vector = vectorOf(vectorQuery);
            return with(spec.with(vector), asked.with(vector), null, null);
        }
        Target target = target(like, context);
        SearchSpec whole = resolve(spec.with(ShardIndex.all(spec.filter(), target.filter)), target.facts, wanted(like.source(), spec.restriction()));
        Rounds rounds = new Rounds(node, target, like, whole, asked);
        if (!rounds.needed()) {
            return with(whole, asked, null, null);
        }
        SetOnce<SearchSpec> waiting = new SetOnce<>();
        context.registerAsyncAction((client, listener) -> rounds.run(client, ActionListener.wrap(found -> {
            waiting.set(found);
            listener.onResponse(null);
        }, listener::onFailure)));
        return with(spec, asked, null, waiting);
    }

    private static QueryBuilder rewritten(QueryBuilder one, QueryRewriteContext context) throws IOException {
        return one == null ? null : within(() -> one.rewrite(context));
    }

    private LangshiftQueryBuilder with(SearchSpec other, SearchSpec asked, QueryBuilder vectorQuery, SetOnce<SearchSpec> next) {
        return new LangshiftQueryBuilder(node, other, asked, vectorQuery, next).boost(boost()).queryName(queryName());
    }

    /** The vector of a knn query, by its JSON: so none of the k-NN plugin's classes is needed. */
    private static float[] vectorOf(QueryBuilder made) throws IOException {
        BytesReference json = BytesReference.bytes(made.toXContent(XContentFactory.jsonBuilder(), ToXContent.EMPTY_PARAMS));
        Map<String, Object> knn = IndexFacts.map(XContentHelper.convertToMap(json, false, XContentType.JSON).v2().get("knn"));
        Object numbers = knn.values().stream().findFirst().map(one -> IndexFacts.map(one).get("vector")).orElse(null);
        Refused.when(!(numbers instanceof List<?>), "[vector_query] became no knn query, whose vector would be searched with.");
        // What is not finite is printed as a word.
        return checkedVector(floats(((List<?>) numbers).stream().map(one -> one instanceof Number number ? number : Float.NaN).toList()));
    }

    /** The one index that is searched, and the filter of the alias that it is searched by; null without one. */
    record Target(IndexFacts facts, QueryBuilder filter) {}

    private Target target(SearchRequest request, QueryRewriteContext context) {
        ClusterState state = node.cluster.state();
        SearchSourceBuilder source = request.source();
        if (source != null && source.pointInTimeBuilder() != null) {
            SearchContextId pit = SearchContextId.decode(context.getWriteableRegistry(), source.pointInTimeBuilder().getId());
            String[] names = Arrays.stream(pit.getActualIndices()).distinct().toArray(String[]::new);
            IndexMetadata index = one(state, node.names.concreteIndices(state, request.indicesOptions(), names));
            AliasFilter alias = pit.aliasFilter().get(index.getIndexUUID());
            return new Target(node.facts(index), alias == null ? null : alias.getQueryBuilder());
        }
        IndexMetadata index = one(state, node.names.concreteIndices(state, request));
        Set<String> names = node.names.resolveExpressions(state, request.indices());
        String[] aliases = node.names.filteringAliases(state, index.getIndex().getName(), names);
        return new Target(node.facts(index), ShardSearchRequest.parseAliasFilter(QueryBuilders::wrapperQuery, index, aliases));
    }

    private static IndexMetadata one(ClusterState state, Index[] found) {
        Refused.when(found.length != 1, "searches one index, not " + found.length + ".");
        Set<String> others = new TreeSet<>();
        for (IndexShardRoutingTable shard : state.routingTable().index(found[0])) {
            for (ShardRouting copy : shard.activeShards()) {
                DiscoveryNode holder = state.nodes().get(copy.currentNodeId());
                if (!String.valueOf(FORM).equals(holder.getAttributes().get(LangshiftSearchPlugin.ATTRIBUTE))) {
                    others.add(holder.getName());
                }
            }
        }
        Refused.when(
            !others.isEmpty(),
            "Nodes that hold a part of " + found[0].getName() + " lack the plugin langshift, or have another version of it: "
                + String.join(", ", others) + ". Install the same version on every node."
        );
        return state.metadata().getIndexSafe(found[0]);
    }

    /** How many hits a search may need of this query. */
    private static int wanted(SearchSourceBuilder source, QueryBuilder restriction) {
        if (source == null) {
            return USUAL_SIZE;
        }
        int wanted = Math.max(source.from(), 0) + (source.size() < 0 ? USUAL_SIZE : source.size());
        // Of what another query does with the hits nobody knows how many it needs.
        return DocumentSecurity.within(source, restriction) instanceof LangshiftQueryBuilder ? wanted : Math.max(wanted, LEAST_CANDIDATES);
    }

    /** What is asked, with what the index says of itself in place of what was left out. */
    private static SearchSpec resolve(SearchSpec asked, IndexFacts facts, int wanted) {
        facts.check(asked.vector());
        int size = Math.min(MOST, Math.max(1, wanted));
        int k = Math.max(asked.size() > 0 ? asked.size() : LEAST_CANDIDATES, size);
        SearchSpec spec = asked.deep(k, size, asked.onePerGroup());
        if (spec.mode() == Mode.AUTO) {
            spec = calibrated(spec, facts);
        } else if (spec.mode() == Mode.ANCHORED) {
            Calibration kept = Calibration.of(facts);
            spec = spec.with(kept == null ? new Trust(Calibration.USUAL_STRENGTH, Double.NaN, 0, 0) : kept.trust(0));
        }
        if (spec.mode() == Mode.ANCHORED && spec.trust().strength() == 0) {
            spec = spec.with(Mode.DENSE);
        }
        Refused.when(spec.mode() == Mode.ANCHORED && spec.text() == null, "mode anchored needs [text].");
        if (spec.mode() == Mode.ANCHORED) {
            facts.directions();
        }
        return spec.mode() == Mode.DENSE || spec.mode() == Mode.BALANCED ? spec.dense().with(spec.mode()) : spec;
    }

    /** The mode that a calibration found best, with how many documents that holds for. */
    private static SearchSpec calibrated(SearchSpec spec, IndexFacts facts) {
        Calibration kept;
        try {
            kept = Calibration.of(facts);
        } catch (IllegalArgumentException unreadable) {
            kept = null;
        }
        if (kept == null || kept.outdated()) {
            return spec.with(Mode.DENSE);
        }
        Mode mode = Mode.valueOf(kept.mode().toUpperCase(Locale.ROOT));
        return spec.with(mode).with(kept.trust(mode == Mode.DENSE ? 0 : kept.documents()));
    }

    @Override
    protected Query doToQuery(QueryShardContext context) throws IOException {
        Refused.when(
            context.searcher() == null,
            "cannot stand in the filter of an alias, or in a stored query: what it finds depends on what the index then holds."
        );
        IndexMetadata index = context.getIndexSettings().getIndexMetadata();
        IndexFacts facts = node.facts(index);
        if (spec.filter() != null) {
            // Says whether answers may be kept for later, which those to a filter by the time of day may not.
            spec.filter().toQuery(context);
        }
        if (spec.isResolved()) {
            return new ShardQuery(spec, facts, context);
        }
        Refused.when(spec.vector().length == 0, "needs a [vector] where it is not the query of a search.");
        SearchSpec whole = resolve(spec, facts, wanted(null, null));
        Refused.when(
            new Rounds(node, new Target(facts, null), new SearchRequest(), whole, asked).needed(),
            "needs what all shards of " + facts.index + " know, which only a search asks them for."
        );
        return new ShardQuery(whole, facts, context);
    }

    // What all queries have.

    @Override
    protected void doXContent(XContentBuilder builder, Params params) throws IOException {
        builder.startObject(NAME).field("mode", asked.mode().lower()).field("language", asked.language());
        if (asked.text() != null) {
            builder.field("text", asked.text());
        }
        if (asked.vector().length > 0) {
            builder.array("vector", asked.vector());
        }
        if (vectorQuery != null) {
            builder.field("vector_query", vectorQuery);
        }
        if (asked.preference() != 0) {
            builder.field(asked.preference() < 0 ? "spread" : "prefer_language", Math.abs(asked.preference()));
        }
        if (asked.size() > 0) {
            builder.field("k", asked.size());
        }
        builder.field("one_per_group", asked.onePerGroup());
        if (asked.filter() != null) {
            builder.field("filter", asked.filter());
        }
        printBoostAndQueryName(builder);
        builder.endObject();
    }

    @Override
    protected boolean doEquals(LangshiftQueryBuilder other) {
        return spec.equals(other.spec) && Objects.equals(vectorQuery, other.vectorQuery) && next == other.next;
    }

    @Override
    protected int doHashCode() {
        return Objects.hash(spec, vectorQuery);
    }

    @Override
    public String getWriteableName() {
        return NAME;
    }
}
