package org.langshift.opensearch;

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
 * `texts`, with `languages`, are detected; `documents`, each with its `_id`, are made ready for an index of this `meta`.
 */
public final class Cases {

    private Cases() {}

    public static void main(String[] none) throws IOException {
        byte[] read = System.in.readAllBytes();
        Map<String, Object> asked = XContentHelper.convertToMap(JsonXContent.jsonXContent, new java.io.ByteArrayInputStream(read), true);
        Detector detector = Detector.load();
        List<Object> made = new ArrayList<>();
        for (Object text : list(asked, "texts")) {
            Detector.Detection found = detector.detect((String) text, IndexFacts.strings(asked.get("languages")));
            made.add(List.of(found.language(), found.confidence()));
        }
        for (Object one : list(asked, "documents")) {
            made.add(applied(IndexFacts.map(one), asked, Boolean.TRUE.equals(asked.get("detects")) ? detector : null));
        }
        try (XContentBuilder out = JsonXContent.contentBuilder()) {
            System.out.write(BytesReference.toBytes(BytesReference.bytes(out.map(Map.of("made", made)))));
        }
        System.out.flush();
    }

    private static List<?> list(Map<String, Object> asked, String name) {
        return asked.get(name) instanceof List<?> found ? found : List.of();
    }

    /** The document, or the sentence with which it is refused. */
    private static Object applied(Map<String, Object> document, Map<String, Object> asked, Detector detector) {
        Map<String, Object> made = new HashMap<>(document);
        try {
            new DocumentShift("the-index", IndexFacts.map(asked.get("meta"))).apply(made, detector);
        } catch (IllegalArgumentException refused) {
            return refused.getMessage();
        }
        return made;
    }
}
