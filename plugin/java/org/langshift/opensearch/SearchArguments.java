package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.opensearch.common.xcontent.LoggingDeprecationHandler;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.xcontent.MediaType;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.core.xcontent.XContentParser;

/**
 * What a search is asked for, as `SearchArguments` of `retrieval/settings.py` has it.
 *
 * @param text in normal form
 * @param vector of the query; null where it is to be made
 * @param language as the field holds it; null where it is to be detected
 * @param filters field -> what it must be
 * @param filterQueries queries in the server's own language, as JSON
 * @param fields which of the documents' fields hits bring; null for all
 */
record SearchArguments(
    Setting setting,
    String text,
    float[] vector,
    String language,
    int size,
    Map<String, Object> filters,
    List<Object> filterQueries,
    List<String> sort,
    List<String> facets,
    List<String> fields,
    int passages,
    boolean explain,
    boolean snippets
) {

    /**
     * How to search.
     *
     * @param mode as it is asked for or, once that is known, what `auto` stands for
     * @param preference below 0 for other languages than the query's
     * @param lexicalWeight the share of words in `hybrid`
     */
    record Setting(String mode, double preference, String fusion, double lexicalWeight, boolean onePerGroup) {

        Setting with(String otherMode, double otherWeight) {
            return new Setting(otherMode, preference, fusion, otherWeight, onePerGroup);
        }

        boolean needsVector() {
            return !mode.equals("lexical") || preference != 0;
        }

        /** As an answer shows it. */
        Map<String, Object> shown() {
            Map<String, Object> made = new LinkedHashMap<>();
            made.put("mode", mode);
            made.put("preference", preference);
            made.put("fusion", fusion);
            made.put("lexical_weight", lexicalWeight);
            made.put("sparse_weight", 0.0);
            made.put("one_per_group", onePerGroup);
            made.put("rerank", null);
            made.put("rerank_depth", 50);
            made.put("rerank_per_language", 5);
            made.put("rerank_fallback", "fail");
            return made;
        }
    }

    private static final List<String> MODES = List.of("auto", "dense", "lexical", "hybrid", "balanced", "anchored");
    private static final List<String> FUSIONS = List.of("min-max", "rrf");
    private static final int MOST_HITS = 1000, MOST_PASSAGES = 100;
    private static final double USUAL_WEIGHT = 0.3;

    /** Takes them from a request. */
    static SearchArguments parse(BytesReference body, MediaType type, NamedXContentRegistry contents) throws IOException {
        try (XContentParser parser = XContentHelper.createParser(contents, LoggingDeprecationHandler.INSTANCE, body, type)) {
            return new Body(parser.mapOrdered()).read();
        }
    }

    /** What is left of a request. */
    private record Body(Map<String, Object> given) {

        SearchArguments read() {
            Refused.when(given.containsKey("rerank"), "[rerank] is done by langshift's own searches alone: leave it out.");
            String text = string("text");
            Refused.when(text == null, "needs a [text].");
            SearchArguments made = new SearchArguments(
                setting(),
                LangshiftQueryBuilder.checkedText(text),
                vector(),
                language(),
                whole("size", 10, 1, MOST_HITS),
                filters(),
                queries(),
                names("sort", List.of()),
                names("facets", List.of()),
                names("fields", null),
                whole("passages", 0, 0, MOST_PASSAGES),
                truth("explain"),
                truth("snippets")
            );
            Iterator<String> rest = given.keySet().iterator();
            Refused.when(rest.hasNext(), "There is no argument [" + (rest.hasNext() ? rest.next() : "") + "].");
            return made;
        }

        private Setting setting() {
            boolean tokens = given.containsKey("sparse_weight") || given.containsKey("sparse_embedding") || "sparse".equals(given.get("mode"));
            Refused.when(
                tokens,
                "Weights of tokens are searched by langshift's own searches, or by OpenSearch's query neural_sparse: choose another mode, "
                    + "without [sparse_weight] and [sparse_embedding]."
            );
            String mode = choice("mode", MODES, "auto"), fusion = choice("fusion", FUSIONS, null);
            Double weight = number("lexical_weight", 1), preference = number("prefer_language", 2), spread = number("spread", 2);
            Refused.when(
                preference != null && spread != null,
                "[prefer_language] and [spread] are mutually exclusive: give one of them."
            );
            Refused.when((fusion != null || weight != null) && !mode.equals("hybrid"), "[fusion] and [lexical_weight] need mode hybrid.");
            double beta = spread != null ? -spread : preference != null ? preference : 0;
            return new Setting(
                mode,
                beta == 0 ? 0 : beta,
                fusion == null ? FUSIONS.get(0) : fusion,
                weight == null ? USUAL_WEIGHT : weight,
                truth("one_per_group")
            );
        }

        private String language() {
            String told = string("language");
            return told == null ? null : LangshiftQueryBuilder.checkedLanguage(told);
        }

        private float[] vector() {
            Object told = given.remove("vector");
            if (told == null) {
                return null;
            }
            boolean numbers = told instanceof List<?> list && !list.isEmpty() && list.stream().allMatch(one -> one instanceof Number);
            Refused.when(!numbers, "[vector] is a list of numbers.");
            List<Number> made = ((List<?>) told).stream().map(Number.class::cast).toList();
            return LangshiftQueryBuilder.checkedVector(LangshiftQueryBuilder.floats(made));
        }

        private Map<String, Object> filters() {
            Object told = given.remove("filters");
            Refused.when(told != null && !(told instanceof Map), "[filters] maps each field to what it must be.");
            return IndexFacts.map(told);
        }

        private List<Object> queries() {
            Object told = given.remove("dsl_filter");
            List<Object> made = told == null ? List.of() : told instanceof List<?> list ? new ArrayList<>(list) : List.of(told);
            Refused.when(!made.stream().allMatch(one -> one instanceof Map), "[dsl_filter] is a query or a list of them.");
            return made;
        }

        private String string(String name) {
            Object told = given.remove(name);
            Refused.when(told != null && !(told instanceof String), "[" + name + "] is a string.");
            return (String) told;
        }

        private String choice(String name, List<String> choices, String usual) {
            String told = string(name);
            Refused.when(
                told != null && !choices.contains(told),
                "Unknown " + name + " [" + told + "]: choose one of " + String.join(", ", choices) + "."
            );
            return told == null ? usual : told;
        }

        private Double number(String name, int most) {
            Object told = given.remove(name);
            double value = IndexFacts.number(told, told == null ? 0 : -1);
            Refused.when(!(value >= 0 && value <= most), "[" + name + "] is a number from 0 to " + most + ".");
            return told == null ? null : value;
        }

        private int whole(String name, int usual, int least, int most) {
            Object told = given.remove(name);
            int value = told == null ? usual : told instanceof Integer one ? one : -1;
            Refused.when(
                value < least || value > most,
                String.format(Locale.ROOT, "[%s] is a whole number from %d to %,d.", name, least, most)
            );
            return value;
        }

        private boolean truth(String name) {
            Object told = given.remove(name);
            Refused.when(told != null && !(told instanceof Boolean), "[" + name + "] is true or false.");
            return Boolean.TRUE.equals(told);
        }

        private List<String> names(String name, List<String> usual) {
            Object told = given.remove(name);
            if (told == null) {
                return usual;
            }
            List<?> several = told instanceof List<?> list ? list : List.of(told);
            boolean fit = several.stream().allMatch(one -> one instanceof String text && !text.isEmpty());
            Refused.when(!fit, "[" + name + "] is the name of a field, or a list of names.");
            return several.stream().map(String.class::cast).toList();
        }
    }
}
