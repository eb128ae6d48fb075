package org.langshift.opensearch;

import java.io.IOException;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.opensearch.ExceptionsHelper;
import org.opensearch.OpenSearchException;
import org.opensearch.action.fieldcaps.FieldCapabilities;
import org.opensearch.action.fieldcaps.FieldCapabilitiesRequest;
import org.opensearch.common.xcontent.LoggingDeprecationHandler;
import org.opensearch.common.xcontent.XContentFactory;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.index.query.AbstractQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.index.query.RangeQueryBuilder;
import org.opensearch.search.builder.SearchSourceBuilder;

/** Filters as a person gives them, checked against an index's fields, and made queries: `retrieval/filters.py`. */
final class Filters {

    // A refused filter shows so many of its values, and so many characters of each.
    private static final int SHOWN = 3, SHOWN_CHARACTERS = 40;
    private static final Map<String, String> RANGE = new LinkedHashMap<>();
    static {
        RANGE.put("gt", ">");
        RANGE.put("gte", ">=");
        RANGE.put("lt", "<");
        RANGE.put("lte", "<=");
    }
    private static final Set<String> TEXTS = Set.of("text", "match_only_text", "search_as_you_type");
    // What else has no values of its own that a query could name.
    private static final Set<String> NO_VALUES = Set.of("object", "nested", "knn_vector");

    private final IndexFacts facts;
    private final String name;
    private final Requests requests;
    private final NamedXContentRegistry contents;
    private final Map<String, String> ownNames = new HashMap<>();
    private final Map<String, Map<String, Map<String, FieldCapabilities>>> known = new HashMap<>();
    private final List<Part> parts = new ArrayList<>();

    /** One of the conditions that all must hold, as a person would write it. */
    private record Part(String text, QueryBuilder clause) {}

    /** @param name as the index was asked for */
    Filters(IndexFacts facts, String name, Requests requests, NamedXContentRegistry contents) {
        this.facts = facts;
        this.name = name;
        this.requests = requests;
        this.contents = contents;
        ownNames.put("language", facts.language);
        ownNames.put("group", facts.group);
        ownNames.put(facts.groupSource, facts.group);
        if (facts.parent != null) {
            ownNames.put("parent", facts.parent);
            ownNames.put(facts.parentSource, facts.parent);
        }
    }

    /** The query that what is searched must match; null where there are none. */
    QueryBuilder checked(Map<String, Object> filters, List<Object> queries) throws IOException {
        for (Map.Entry<String, Object> one : filters.entrySet()) {
            add(one.getKey(), conditions(one.getKey(), one.getValue()));
        }
        for (Object one : queries) {
            String json = BytesReference.bytes(XContentFactory.jsonBuilder().map(IndexFacts.map(one))).utf8ToString();
            parts.add(new Part(cut(json), query(json)));
        }
        return ShardIndex.all(parts.stream().map(Part::clause).toArray(QueryBuilder[]::new));
    }

    private QueryBuilder query(String json) throws IOException {
        try (
            XContentParser parser = JsonXContent.jsonXContent.createParser(contents, LoggingDeprecationHandler.INSTANCE, json)
        ) {
            return AbstractQueryBuilder.parseInnerQueryBuilder(parser);
        } catch (IllegalArgumentException | OpenSearchException unknown) {
            throw Refused.because("The filter " + cut(json) + " is no query that the cluster takes: " + unknown.getMessage() + ".");
        }
    }

    /** Says of a search that was refused whether a filter is why. */
    void requireFitting() {
        for (Part one : parts) {
            try {
                requests.ask(new SearchSourceBuilder().size(0).query(QueryBuilders.boolQuery().filter(one.clause)));
            } catch (RuntimeException error) {
                Throwable cause = ExceptionsHelper.unwrapCause(error);
                OpenSearchException[] roots = OpenSearchException.guessRootCauses(cause);
                if (ExceptionsHelper.status(cause) == RestStatus.BAD_REQUEST) {
                    String what = one.text.startsWith("{") ? "is no query that the cluster takes" : "does not fit its field";
                    throw Refused.because("The filter " + one.text + " " + what + ": " + roots[0].getMessage() + ".");
                }
            }
        }
    }

    /** What a field must be, by kind: lists of values for `in` and `not`, one for all else. */
    private static Map<String, Object> conditions(String field, Object given) {
        Map<String, Object> made = new LinkedHashMap<>();
        if (given instanceof Map) {
            made.putAll(IndexFacts.map(given));
        } else if (given != null) {
            made.put("in", given);
        }
        for (String kind : List.of("in", "not")) {
            made.computeIfPresent(kind, (same, value) -> value instanceof List ? value : List.of(value));
        }
        boolean fit = !made.isEmpty() && made.entrySet().stream().allMatch(one -> switch (one.getKey()) {
            case "in", "not" -> ((List<?>) one.getValue()).stream().allMatch(Filters::isValue);
            case "exists" -> one.getValue() instanceof Boolean;
            default -> RANGE.containsKey(one.getKey()) && isValue(one.getValue());
        });
        Refused.when(
            !fit,
            "The filter [" + field + "] takes values, such as [\"de\", \"th\"], or conditions, such as {\"gte\": 1990, \"lt\": 2000}, "
                + "{\"not\": [\"x\"]} or {\"exists\": true}."
        );
        return made;
    }

    private static boolean isValue(Object one) {
        return one instanceof String || one instanceof Number || one instanceof Boolean;
    }

    /** A part for each condition; ranges together are one. */
    private void add(String field, Map<String, Object> conditions) {
        boolean byLanguage = own(field).equals(facts.language);
        if (conditions.remove("exists") instanceof Boolean exists) {
            capabilities(field);
            parts.add(part(field, exists ? "=" : "!=", "*", QueryBuilders.existsQuery(own(field))));
        }
        for (String kind : List.of("in", "not")) {
            if (conditions.remove(kind) instanceof List<?> values) {
                String sign = kind.equals("in") ? "=" : "!=";
                List<Object> forms = new ArrayList<>();
                values.forEach(one -> forms.addAll(byLanguage ? List.of(language(one)) : forms(one)));
                parts.add(part(field, sign, few(values), QueryBuilders.termsQuery(exact(field, "filter", false), forms)));
            }
        }
        if (conditions.isEmpty()) {
            return;
        }
        String exact = exact(field, "filter", true);
        Set<String> types = capabilities(field).get(exact).keySet();
        boolean dates = types.contains("date") || types.contains("date_nanos");
        Refused.when(
            !dates && conditions.values().stream().anyMatch(one -> String.valueOf(one).startsWith("now")),
            "Index " + name + " has no dates in its field '" + field + "', which is of type " + String.join(", ", types)
                + ": load the index anew with --date-field " + field + "."
        );
        RangeQueryBuilder range = QueryBuilders.rangeQuery(exact);
        conditions.forEach((kind, value) -> {
            boolean includes = kind.endsWith("e");
            if (kind.startsWith("g")) {
                range.from(value, includes);
            } else {
                range.to(value, includes);
            }
        });
        String text = RANGE.keySet().stream().filter(conditions::containsKey)
            .map(kind -> field + RANGE.get(kind) + few(List.of(conditions.get(kind)))).collect(Collectors.joining(" and "));
        parts.add(new Part(text, range));
    }

    private static String language(Object told) {
        String tag = Languages.canonical(String.valueOf(told));
        Refused.when(
            tag.equals(Languages.UND) && !Languages.UND.equals(told),
            "'" + told + "' is not a valid language: use a BCP 47 tag such as th or zh-TW."
        );
        return Languages.fold(tag);
    }

    /** What is canonically equal to a value: other fields than texts are kept as they came. */
    private static Set<Object> forms(Object one) {
        return one instanceof String text
            ? new LinkedHashSet<>(
                List.of(text, Normalizer.normalize(text, Normalizer.Form.NFC), Normalizer.normalize(text, Normalizer.Form.NFD))
                    .stream().distinct().toList()
            )
            : Set.of(one);
    }

    private static Part part(String field, String sign, String values, QueryBuilder clause) {
        return new Part(field + sign + values, sign.equals("!=") ? QueryBuilders.boolQuery().mustNot(clause) : clause);
    }

    private String own(String field) {
        return ownNames.getOrDefault(field, field);
    }

    /**
     * The field that holds the values of a field that is named; of a text its view of type keyword.
     *
     * @param use what for: `filter`, or `sort` and `count`, which need doc values
     * @param ordered whether values are put in order: dates that are kept as they came have a view for that
     */
    String exact(String field, String use, boolean ordered) {
        String own = own(field);
        Map<String, Map<String, FieldCapabilities>> found = capabilities(field);
        Set<String> types = found.get(own).keySet();
        String wanted = types.stream().anyMatch(TEXTS::contains) ? "keyword"
            : ordered && types.equals(Set.of("keyword")) ? "date"
            : "";
        String exact = found.entrySet().stream()
            .filter(view -> !view.getKey().equals(own) && view.getValue().keySet().equals(Set.of(wanted)))
            .map(Map.Entry::getKey)
            .min((one, other) -> {
                int named = Boolean.compare(!one.endsWith("." + wanted), !other.endsWith("." + wanted));
                return named == 0 ? one.compareTo(other) : named;
            })
            .orElse(own);
        Map<String, FieldCapabilities> of = found.get(exact);
        String refusal = "Index " + name + " cannot " + use + " by its field '" + field + "', which is of type "
            + of.keySet().stream().sorted().collect(Collectors.joining(", "));
        boolean words = of.keySet().stream().anyMatch(TEXTS::contains), none = of.keySet().stream().anyMatch(NO_VALUES::contains);
        Refused.when(
            words,
            refusal + " and holds words, not values: name a field of type keyword, or search for its words"
                + (use.equals("filter") ? ", or filter by OpenSearch's own DSL, such as {'match_phrase': {'" + field + "': '…'}}." : ".")
        );
        Refused.when(none, refusal + " and has no values: name a field inside it, or another one.");
        Refused.when(
            !use.equals("filter") && !of.values().stream().allMatch(FieldCapabilities::isAggregatable),
            refusal + " and keeps no doc values: map it with doc_values, or name another field."
        );
        return exact;
    }

    /** Field -> type -> what the server can do with it, of a field and its views. */
    private Map<String, Map<String, FieldCapabilities>> capabilities(String field) {
        return known.computeIfAbsent(own(field), own -> {
            String asked = own.isBlank() ? "_" : own;
            Map<String, Map<String, FieldCapabilities>> found = fields(asked, asked + ".*");
            Refused.when(
                !found.containsKey(own),
                "Index " + name + " has no field '" + field + "': use language, group or another field that its documents came with."
            );
            return found;
        });
    }

    private Map<String, Map<String, FieldCapabilities>> fields(String... names) {
        return requests.client.fieldCaps(new FieldCapabilitiesRequest().indices(facts.index).fields(names)).actionGet().get();
    }

    /** Refuses to search for groups where the documents of one cannot be asked for. */
    void requireGroups() {
        Map<String, FieldCapabilities> found = fields(facts.group).getOrDefault(facts.group, Map.of());
        List<String> unfit = found.entrySet().stream()
            .filter(one -> TEXTS.contains(one.getKey()) || NO_VALUES.contains(one.getKey()) || !one.getValue().isSearchable())
            .map(Map.Entry::getKey).sorted().toList();
        String problem = found.isEmpty() ? "is not in its mapping" : "is of type " + String.join(", ", unfit);
        Refused.when(
            found.isEmpty() || !unfit.isEmpty(),
            "Index " + name + " cannot be searched for one document per group, because its field '" + facts.group + "' " + problem + "."
        );
    }

    /** The first of the values, as `a,b,c and 97 more`. */
    private static String few(List<?> values) {
        String first = values.stream().limit(SHOWN).map(one -> cut(String.valueOf(one))).collect(Collectors.joining(","));
        int more = values.size() - SHOWN;
        return first + (more > 0 ? String.format(java.util.Locale.ROOT, " and %,d more", more) : "");
    }

    private static String cut(String text) {
        return text.length() <= SHOWN_CHARACTERS ? text : text.substring(0, SHOWN_CHARACTERS) + "…";
    }
}
