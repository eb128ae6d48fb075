package org.langshift.opensearch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import org.opensearch.cluster.metadata.IndexMetadata;
import org.opensearch.cluster.metadata.MappingMetadata;
import org.opensearch.index.IndexSettings;

/** What an index says of itself in its mapping, as `plugin/metadata.py` reads it; read once for each version of that. */
final class IndexFacts {

    private static final Map<String, Object> NONE = Map.of();
    /** What this reads of `_meta`, as `debias/fingerprint.py` has it. */
    private static final int FORMAT = 1;
    private static final String LUCENE = "lucene";
    /** Those whose whole vectors lie in Lucene's files, to be scored exactly; of Faiss at length 1. */
    private static final Set<String> ENGINES = Set.of(LUCENE, "faiss");

    final String index;
    final long version;
    final int shards;
    /** How many hits one search may bring. */
    final int window;
    /** `_meta.langshift`; empty where the index is not langshift's. */
    final Map<String, Object> fingerprint;
    final int dimension;
    final double gamma;
    /** `_meta.langshift_fields`, with the usual names where it has none. */
    final String vector, language, group, parent;
    private final String title;
    /** Where a document holds its group. */
    final String groupSource;
    final List<String> texts;
    final Map<String, Double> weights;
    final boolean split;
    final boolean paged;
    final Set<String> analyzed;
    /** Languages whose texts have a field, and with it an analyzer of their own. */
    final Set<String> textLanguages;
    /** `_meta.langshift_anchors`; null where the index was never calibrated. */
    final Object calibration;
    /** What the mapping says of the field of vectors. */
    final Map<String, Object> vectorField;
    final IndexMeta meta;
    private final double own;
    private volatile StoredShift shift;
    private volatile Spread spread;

    /** The spread of a sample, and how many documents there were when it was drawn. */
    record Spread(double value, int documents) {}

    IndexFacts(IndexMetadata metadata) {
        index = metadata.getIndex().getName();
        version = metadata.getMappingVersion();
        shards = metadata.getNumberOfShards();
        window = Math.min(LangshiftQueryBuilder.MOST, IndexSettings.MAX_RESULT_WINDOW_SETTING.get(metadata.getSettings()));
        MappingMetadata mapping = metadata.mapping();
        Map<String, Object> source = mapping == null ? NONE : mapping.sourceAsMap();
        meta = new IndexMeta(index, "", map(source.get("_meta")));
        IndexMeta made = meta.object("langshift"), fields = meta.object("langshift_fields");
        fingerprint = made.values();
        dimension = (int) made.number("dimension", 0);
        gamma = made.number("gamma", 0);
        own = made.number("own", 0);
        calibration = meta.values().get("langshift_anchors");
        vector = fields.field("vector", "embedding");
        language = fields.field("language", "language");
        List<String> named = fields.fields("texts");
        split = named.isEmpty() || fields.flag("split");
        texts = named.isEmpty() ? List.of("title", "text") : named;
        title = named.isEmpty() ? "title" : fields.text("title", null);
        groupSource = fields.field("group", "group");
        group = fields.field("group_keyword", groupSource);
        parent = fields.field("parent_keyword", fields.field("parent", null));
        weights = fields.object("weights").numbers();
        analyzed = Set.copyOf(fields.texts("analyzed"));
        vectorField = mapped(source, vector);
        paged = !mapped(source, fields.field("stamp", "shift") + ".page").isEmpty();
        textLanguages = Set.copyOf(map(mapped(source, mainText()).get("properties")).keySet());
        if ("text".equals(mapped(source, language).get("type"))) {
            throw meta.wrong("langshift_fields.language", language + " is not a keyword in the mapping");
        }
    }

    String mainText() {
        return texts.stream().filter(name -> !name.equals(title)).findFirst().orElse(texts.get(0));
    }

    /** Refuses an index that cannot be searched, or not by this vector. */
    void check(float[] query) {
        checkFingerprint(index, fingerprint);
        String engine = engine(), numbers = text(vectorField, "data_type", "float").toLowerCase(Locale.ROOT);
        // Where neither names a space, it is that of k-NN; only a trained model knows its own.
        Object space = method().getOrDefault("space_type", vectorField.getOrDefault("space_type", "l2"));
        boolean trained = vectorField.containsKey("model_id"), known = ENGINES.contains(engine) && "cosinesimil".equals(space);
        boolean floats = "knn_vector".equals(vectorField.get("type")) && "float".equals(numbers);
        Refused.when(
            !floats || !known || trained,
            "Index " + index + " keeps its vectors as " + numbers + " by engine " + engine + " and "
                + (trained ? "a trained model" : "space " + space)
                + "; this query searches those as float by lucene or faiss and cosinesimil: search with `langshift search`."
        );
        Refused.when(
            query.length != dimension,
            "The vector has dimension " + query.length + ", and index " + index + " holds vectors of " + dimension + "."
        );
    }

    private Map<String, Object> method() {
        return map(vectorField.get("method"));
    }

    /** What makes the graph of vectors; Lucene does by its name alone. */
    private String engine() {
        Object told = method().getOrDefault("engine", vectorField.getOrDefault("engine", "faiss"));
        return told.toString().toLowerCase(Locale.ROOT);
    }

    /** Refuses an index that is not langshift's, or was made by a later version. */
    static void checkFingerprint(String index, Map<String, Object> made) {
        Refused.when(made.isEmpty(), "Index " + index + " has no langshift fingerprint: it was not created by langshift.");
        Refused.when(
            number(made.get("format"), FORMAT) > FORMAT,
            "Index " + index + " was made by a later version of langshift: install its plugin on every node."
        );
    }

    /** Whether vectors come back as they were written; other engines may give them length 1. */
    boolean keepsLengths() {
        return LUCENE.equals(engine());
    }

    /** Whether the scores of the graph are those of the whole vectors. */
    boolean keepsWholeVectors() {
        boolean told = vectorField.containsKey("mode") || map(method().get("parameters")).containsKey("encoder");
        return !told && vectorField.getOrDefault("compression_level", "1x").equals("1x");
    }

    /** How many times as many as are asked for a search compares anew by whole vectors; 0 where the server sees to it itself. */
    int oversample() {
        boolean bits = "32x".equals(vectorField.get("compression_level")) && !vectorField.containsKey("mode");
        return bits ? dimension > 1000 ? 3 : 5 : 0;
    }

    /** Whether a search must say how many nodes of the graph it keeps in view: `sets_ef_search` of `plugin/index_body.py`. */
    boolean setsView() {
        boolean graph = "hnsw".equals(method().getOrDefault("name", "hnsw")) && !vectorField.containsKey("mode");
        return graph && "faiss".equals(engine()) && Set.of("1x", "2x").contains(vectorField.getOrDefault("compression_level", "1x"));
    }

    /** The orthonormal rows of which documents hold only the part 1 - gamma; none where gamma is 0. */
    double[][] directions() {
        return gamma == 0 ? new double[0][] : shift().directions;
    }

    private StoredShift shift() {
        StoredShift made = shift;
        if (made == null) {
            made = new StoredShift(meta);
            shift = made;
        }
        return made;
    }

    /** Numbers of rows that follow one another, row by row; none where there are none. */
    static double[][] rows(float[] flat, int dimension) {
        double[][] made = new double[flat.length == 0 ? 0 : flat.length / dimension][dimension];
        for (int i = 0; i < flat.length; i++) {
            made[i / dimension][i % dimension] = flat[i];
        }
        return made;
    }

    /** How far documents in a language prefer it already, in units of cosine. */
    double preferred(String language) {
        return own > 0 && shift().preferences.containsKey(language) ? own : 0;
    }

    /** What an engine stores at length 1, to rounding: then a preference is of beta and not of its weight. */
    private static final double NORMALISED = 1e-4;

    /** A vector at length 1, without what moves documents in a language towards queries in it. */
    double[] plain(float[] vector, String spoken) {
        double[] made = Anchors.doubles(vector);
        float[] known = own > 0 ? shift().preferences.get(spoken) : null;
        if (known != null) {
            double weight = Math.abs(Anchors.length(made) - 1) < NORMALISED ? own : shift().weight;
            for (int i = 0; i < made.length; i++) {
                made[i] -= weight * known[i];
            }
        }
        return Anchors.unit(made);
    }

    /** The spread that was measured when the index had about as many documents; null where none was. */
    Double spread(int documents) {
        Spread known = spread;
        return known == null || documents > 2L * known.documents || known.documents > 2L * documents ? null : known.value;
    }

    void keepSpread(double value, int documents) {
        spread = new Spread(value, documents);
    }

    private static Map<String, Object> mapped(Map<String, Object> mapping, String path) {
        Map<String, Object> found = mapping;
        for (String part : path.split("\\.")) {
            found = map(map(found.get("properties")).get(part));
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(Object value) {
        return value instanceof Map<?, ?> ? (Map<String, Object>) value : NONE;
    }

    static double number(Object value, double otherwise) {
        return value instanceof Number found ? found.doubleValue() : otherwise;
    }

    static String text(Map<String, Object> within, String name, String otherwise) {
        return within.get(name) instanceof String found ? found : otherwise;
    }

    static List<String> strings(Object value) {
        return value instanceof List<?> list ? list.stream().map(String::valueOf).toList() : List.of();
    }

    static float[] decoded(String text) {
        byte[] bytes = Base64.getDecoder().decode(text);
        float[] numbers = new float[bytes.length / Float.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(numbers);
        return numbers;
    }
}
