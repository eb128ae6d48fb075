package org.langshift.opensearch;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.xcontent.XContentBuilder;

/**
 * Answers what the tests ask of rules that need no server: one JSON object from standard input, one to standard output.
 * `texts`, each with its `languages`, are detected; `documents` are made ready for the index that each names of `indices`.
 */
public final class Cases {

    private Cases() {}

    public static void main(String[] none) throws IOException {
        ByteArrayInputStream read = new ByteArrayInputStream(System.in.readAllBytes());
        Map<String, Object> asked = XContentHelper.convertToMap(JsonXContent.jsonXContent, read, true);
        Detector detector = Detector.load();
        List<Object> made = new ArrayList<>();
        for (Map<String, Object> one : objects(asked.get("texts"))) {
            Detector.Detection found = detector.detect((String) one.get("text"), IndexFacts.strings(one.get("languages")));
            made.add(List.of(found.language(), found.confidence()));
        }
        Map<String, Object> indices = IndexFacts.map(asked.get("indices"));
        for (Map<String, Object> one : objects(asked.get("documents"))) {
            String index = (String) one.get("index");
            boolean detects = Boolean.TRUE.equals(one.get("detects"));
            made.add(applied(IndexFacts.map(one.get("document")), index, IndexFacts.map(indices.get(index)), detects ? detector : null));
        }
        try (XContentBuilder out = JsonXContent.contentBuilder()) {
            System.out.write(BytesReference.toBytes(BytesReference.bytes(out.map(Map.of("made", made)))));
        }
        System.out.flush();
    }

    private static List<Map<String, Object>> objects(Object list) {
        return list instanceof List<?> found ? found.stream().map(IndexFacts::map).toList() : List.of();
    }

    /** The document, or the sentence with which it is refused. */
    private static Object applied(Map<String, Object> document, String index, Map<String, Object> meta, Detector detector) {
        Map<String, Object> made = new HashMap<>(document);
        try {
            new DocumentShift(new IndexMeta(index, "", meta), true, true).apply(made, detector);
        } catch (IllegalArgumentException refused) {
            return refused.getMessage();
        }
        return made;
    }
}
