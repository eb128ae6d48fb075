package org.langshift.opensearch;

import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.opensearch.ingest.IngestDocument;

/** `_meta` of an index, or an object within it: what is not there has its usual value, what is otherwise than langshift writes it is refused. */
record IndexMeta(String index, String path, Map<String, Object> values) {

    IllegalArgumentException wrong(String name, String why) {
        return Refused.because(
            "Index " + index + " cannot be read: _meta." + path + name + " is wrong (" + why + "). Correct it with PUT /" + index
                + "/_mapping, or remove the index with `langshift index drop " + index.replaceFirst("-v\\d{4,}$", "") + "`."
        );
    }

    /** What is at a name; null where nothing is, also no null. */
    private <T> T read(String name, Class<T> type, String form) {
        Object value = values.get(name);
        if (values.containsKey(name) && !type.isInstance(value)) {
            throw wrong(name, "expected " + form);
        }
        return type.cast(value);
    }

    IndexMeta object(String name) {
        return new IndexMeta(index, path + name + ".", IndexFacts.map(read(name, Map.class, "an object")));
    }

    double number(String name, double usual) {
        Number value = read(name, Number.class, "a number");
        return value == null ? usual : value.doubleValue();
    }

    Map<String, Double> numbers() {
        Map<String, Double> made = new HashMap<>();
        values.keySet().forEach(name -> made.put(name, number(name, 0)));
        return made;
    }

    boolean flag(String name) {
        return Boolean.TRUE.equals(read(name, Boolean.class, "true or false"));
    }

    String text(String name, String usual) {
        // What an index does not have may be null.
        String value = values.get(name) == null ? usual : read(name, String.class, "text");
        if (value != null && value.isEmpty()) {
            throw wrong(name, "it is empty");
        }
        return value;
    }

    List<String> texts(String name) {
        List<?> list = values.containsKey(name) ? read(name, List.class, "a list") : List.of();
        if (!list.stream().allMatch(String.class::isInstance)) {
            throw wrong(name, "expected text");
        }
        return IndexFacts.strings(list);
    }

    /** The name of a field of documents; of none by which the server knows a document, as a write would go to another one. */
    String field(String name, String usual) {
        return checked(name, text(name, usual));
    }

    List<String> fields(String name) {
        return texts(name).stream().map(one -> checked(name, one)).toList();
    }

    private String checked(String name, String field) {
        if (field != null && Arrays.stream(IngestDocument.Metadata.values()).anyMatch(of -> of.getFieldName().equals(field.split("\\.")[0]))) {
            throw wrong(name, field + " is one of OpenSearch's own fields");
        }
        return field;
    }

    /** Rows of so many numbers in base64, one after the other. */
    float[] rows(String name, int dimension) {
        float[] numbers = {};
        try {
            numbers = IndexFacts.decoded(text(name, ""));
        } catch (IllegalArgumentException error) {
            // Told below.
        }
        boolean finite = true;
        for (float one : numbers) {
            finite &= Float.isFinite(one);
        }
        if (!finite || dimension < 1 || numbers.length == 0 || numbers.length % dimension != 0) {
            throw wrong(name, "expected base64 of " + dimension + " finite 32-bit floats, or of several times as many");
        }
        return numbers;
    }

    /** A single such row. */
    float[] vector(String name, int dimension) {
        float[] numbers = rows(name, dimension);
        if (numbers.length != dimension) {
            throw wrong(name, numbers.length + " numbers, not " + dimension);
        }
        return numbers;
    }

    /** The vectors of languages. */
    Map<String, float[]> vectors(int dimension) {
        Map<String, float[]> made = new HashMap<>();
        values.keySet().forEach(tag -> made.put(tag, vector(tag, dimension)));
        return made;
    }
}
