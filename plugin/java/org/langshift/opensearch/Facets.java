package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.opensearch.action.search.SearchResponse;
import org.opensearch.common.xcontent.XContentFactory;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.xcontent.ToXContent;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.search.aggregations.Aggregator.SubAggCollectionMode;
import org.opensearch.search.aggregations.AggregationBuilder;
import org.opensearch.search.aggregations.AggregationBuilders;
import org.opensearch.search.builder.SearchSourceBuilder;

/** How many of the documents that match have which value of a field: `retrieval/facets.py`. */
final class Facets {

    private static final int MOST_VALUES = 10;
    // Each shard tells so many, and of chunks so many are looked at; different documents are counted exactly up to so many.
    private static final int OF_SHARD = 1000, OF_CHUNKS = 100, EXACT = 40_000;

    private Facets() {}

    /** @param fields name -> field with doc values */
    static Map<String, Object> count(Requests requests, IndexFacts facts, Map<String, String> fields, QueryBuilder filter)
        throws IOException {
        SearchSourceBuilder body = new SearchSourceBuilder().size(0);
        if (filter != null) {
            body.query(QueryBuilders.boolQuery().filter(filter));
        }
        boolean chunks = facts.parent != null;
        fields.forEach((name, field) -> {
            if (chunks) {
                AggregationBuilder values = AggregationBuilders.terms("values").field(field).size(OF_CHUNKS).shardSize(OF_SHARD)
                    .collectMode(SubAggCollectionMode.BREADTH_FIRST);
                AggregationBuilder has = AggregationBuilders.filter(name, QueryBuilders.existsQuery(field));
                body.aggregation(ofChunks(facts, has.subAggregation(ofChunks(facts, values))));
            } else {
                body.aggregation(AggregationBuilders.terms(name).field(field).size(MOST_VALUES).shardSize(OF_SHARD));
            }
        });
        Map<String, Object> counted = answered(requests.ask(body)), made = new LinkedHashMap<>();
        fields.keySet().forEach(name -> made.put(name, facet(IndexFacts.map(counted.get(name)), chunks)));
        return made;
    }

    private static AggregationBuilder ofChunks(IndexFacts facts, AggregationBuilder outer) {
        return outer.subAggregation(AggregationBuilders.cardinality("documents").field(facts.parent).precisionThreshold(EXACT))
            .subAggregation(AggregationBuilders.missing("nameless").field(facts.parent));
    }

    private static Map<String, Object> answered(SearchResponse answer) throws IOException {
        XContentBuilder json = answer.toXContent(XContentFactory.jsonBuilder(), ToXContent.EMPTY_PARAMS);
        Map<String, Object> whole = XContentHelper.convertToMap(BytesReference.bytes(json), true, json.contentType()).v2();
        return IndexFacts.map(whole.get("aggregations"));
    }

    private static Map<String, Object> facet(Map<String, Object> counted, boolean chunks) {
        Map<String, Object> values = chunks ? IndexFacts.map(counted.get("values")) : counted;
        List<Map<String, Object>> made = new ArrayList<>();
        for (Object one : (List<?>) values.get("buckets")) {
            Map<String, Object> bucket = IndexFacts.map(one), value = new LinkedHashMap<>();
            value.put("value", bucket.getOrDefault("key_as_string", bucket.get("key")));
            value.put("count", chunks ? documents(bucket) : ((Number) bucket.get("doc_count")).longValue());
            made.add(value);
        }
        long other;
        if (chunks) {
            made.sort(Comparator.comparingLong(one -> -(Long) one.get("count")));
            made = made.subList(0, Math.min(MOST_VALUES, made.size()));
            other = Math.max(0, documents(counted) - made.stream().mapToLong(one -> (Long) one.get("count")).sum());
        } else {
            other = ((Number) counted.get("sum_other_doc_count")).longValue();
        }
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("values", made);
        shown.put("other", other);
        return shown;
    }

    /** How many documents the chunks of a bucket are of; one that names no document is one itself. */
    private static long documents(Map<String, Object> bucket) {
        Map<String, Object> named = IndexFacts.map(bucket.get("documents")), nameless = IndexFacts.map(bucket.get("nameless"));
        return ((Number) named.get("value")).longValue() + ((Number) nameless.get("doc_count")).longValue();
    }
}
