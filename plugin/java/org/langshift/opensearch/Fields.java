package org.langshift.opensearch;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Fields of a document by paths with dots, also where a part of a name has dots itself: `plugin/shift.painless`. */
final class Fields {

    private Fields() {}

    /** The value at a path; null where nothing is there. */
    static Object at(Map<String, Object> document, String path) {
        if (document.containsKey(path)) {
            return document.get(path);
        }
        for (int dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1)) {
            Object found = document.get(path.substring(0, dot)) instanceof Map<?, ?> inner ? at(map(inner), path.substring(dot + 1)) : null;
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** Puts a value where the path leads; null takes away what is there. */
    static void put(Map<String, Object> document, String path, Object value) {
        int dot = path.indexOf('.');
        if (document.containsKey(path) || dot < 0) {
            document.compute(path, (name, before) -> value);
            return;
        }
        for (int next = dot; next >= 0; next = path.indexOf('.', next + 1)) {
            if (document.get(path.substring(0, next)) instanceof Map<?, ?> inner) {
                put(map(inner), path.substring(next + 1), value);
                return;
            }
        }
        Map<String, Object> inner = new HashMap<>();
        document.put(path.substring(0, dot), inner);
        put(inner, path.substring(dot + 1), value);
    }

    /** Puts the strings at a path into the form in which texts are asked for, also those within lists and by language. */
    static Object normalise(Object value, String path) {
        if (value instanceof List<?> list) {
            @SuppressWarnings("unchecked")
            List<Object> within = (List<Object>) list;
            within.replaceAll(one -> normalise(one, path));
        } else if (value instanceof Map<?, ?> fields) {
            map(fields).replaceAll((name, one) -> {
                boolean leads = path.isEmpty() || path.equals(name) || path.startsWith(name + ".");
                return leads ? normalise(one, path.length() > name.length() ? path.substring(name.length() + 1) : "") : one;
            });
        } else if (value instanceof String text && path.isEmpty()) {
            return Languages.normalForm(text);
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Map<?, ?> fields) {
        return (Map<String, Object>) fields;
    }
}
