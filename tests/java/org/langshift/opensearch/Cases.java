package org.langshift.opensearch;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.opensearch.common.CheckedFunction;
import org.opensearch.common.io.stream.BytesStreamOutput;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.opensearch.core.ParseField;
import org.opensearch.core.common.bytes.BytesArray;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.common.io.stream.NamedWriteableAwareStreamInput;
import org.opensearch.core.common.io.stream.NamedWriteableRegistry;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.index.query.AbstractQueryBuilder;
import org.opensearch.index.query.BoolQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.TermQueryBuilder;
import org.opensearch.plugins.Plugin;

/**
 * Answers what the tests ask of rules that need no server: one JSON object from standard input, one to standard output.
 * `texts`, each with its `languages`, are detected; `documents` are made ready for the index that each names of `indices`;
 * `queries` are printed as they are, as another node gets them, and as each of the modes that a shard is told of; `points`
 * are classes, of which the server's extension points are told.
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
        for (Map<String, Object> one : objects(asked.get("queries"))) {
            made.add(changed(read(new BytesArray(JsonXContent.contentBuilder().map(one).toString()))));
        }
        for (String name : IndexFacts.strings(asked.get("points"))) {
            made.add(points(name));
        }
        try (XContentBuilder out = JsonXContent.contentBuilder()) {
            System.out.write(BytesReference.toBytes(BytesReference.bytes(out.map(Map.of("made", made)))));
        }
        System.out.flush();
    }

    /** The interfaces of the server's plugins that a class and those above it implement. */
    private static List<String> points(String name) throws IOException {
        List<String> found = new ArrayList<>();
        try {
            for (Class<?> one = Class.forName(name); one != Plugin.class; one = one.getSuperclass()) {
                Arrays.stream(one.getInterfaces()).map(Class::getSimpleName).forEach(found::add);
            }
        } catch (ClassNotFoundException error) {
            throw new IOException(error);
        }
        return found;
    }

    private static final List<NamedXContentRegistry.Entry> QUERIES = List.of(
        entry(LangshiftQueryBuilder.NAME, parser -> LangshiftQueryBuilder.fromXContent(parser, null)),
        entry(BoolQueryBuilder.NAME, BoolQueryBuilder::fromXContent), entry(TermQueryBuilder.NAME, TermQueryBuilder::fromXContent)
    );
    private static final NamedWriteableRegistry WRITTEN = new NamedWriteableRegistry(
        List.of(
            new NamedWriteableRegistry.Entry(
                QueryBuilder.class, LangshiftQueryBuilder.NAME, in -> new LangshiftQueryBuilder(in, (Node) null)
            ),
            new NamedWriteableRegistry.Entry(QueryBuilder.class, BoolQueryBuilder.NAME, BoolQueryBuilder::new),
            new NamedWriteableRegistry.Entry(QueryBuilder.class, TermQueryBuilder.NAME, TermQueryBuilder::new)
        )
    );

    private static NamedXContentRegistry.Entry entry(String name, CheckedFunction<XContentParser, QueryBuilder, IOException> parser) {
        return new NamedXContentRegistry.Entry(QueryBuilder.class, new ParseField(name), parser);
    }

    private static LangshiftQueryBuilder read(BytesReference json) throws IOException {
        NamedXContentRegistry registry = new NamedXContentRegistry(QUERIES);
        try (XContentParser parser = JsonXContent.jsonXContent.createParser(registry, null, json.streamInput())) {
            parser.nextToken();
            return (LangshiftQueryBuilder) AbstractQueryBuilder.parseInnerQueryBuilder(parser);
        }
    }

    /** What a query prints, as it is or as nodes have it, where that is read as another one. */
    private static Object changed(LangshiftQueryBuilder query) throws IOException {
        List<LangshiftQueryBuilder> all = new ArrayList<>(List.of(query, sent(query)));
        SearchSpec.Addition added = new SearchSpec.Addition(0.5, true, Map.of("a", 0.25f));
        for (SearchSpec.Mode mode : query.spec.vector().length > 0 ? SearchSpec.Mode.values() : new SearchSpec.Mode[0]) {
            SearchSpec resolved = query.spec.with(mode).deep(700, 13, true).with(new float[] { 9 }).with(added);
            LangshiftQueryBuilder made = new LangshiftQueryBuilder(null, resolved, query.spec);
            all.add(sent(made.boost(query.boost()).queryName(query.queryName())));
        }
        List<Object> wrong = new ArrayList<>();
        for (LangshiftQueryBuilder one : all) {
            LangshiftQueryBuilder again = read(new BytesArray(one.toString()));
            if (!again.equals(query) || again.hashCode() != query.hashCode() || !again.toString().equals(query.toString())) {
                wrong.add(one.toString());
            }
        }
        return wrong;
    }

    private static LangshiftQueryBuilder sent(LangshiftQueryBuilder query) throws IOException {
        try (BytesStreamOutput out = new BytesStreamOutput()) {
            out.writeNamedWriteable(query);
            StreamInput in = new NamedWriteableAwareStreamInput(out.bytes().streamInput(), WRITTEN);
            return (LangshiftQueryBuilder) in.readNamedWriteable(QueryBuilder.class);
        }
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
