package org.langshift.opensearch;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.BiConsumer;

import org.opensearch.action.support.IndicesOptions;
import org.opensearch.cluster.ClusterState;
import org.opensearch.core.index.Index;
import org.opensearch.index.IndexNotFoundException;
import org.opensearch.ingest.AbstractProcessor;
import org.opensearch.ingest.ConfigurationUtils;
import org.opensearch.ingest.IngestDocument;
import org.opensearch.ingest.IngestService;
import org.opensearch.ingest.Pipeline;
import org.opensearch.ingest.Processor;

/**
 * The ingest processor `langshift`: it makes documents ready for the index that they are written to, by what that says
 * of itself, so that one pipeline serves all indices. With `pipeline` it runs that before.
 */
final class LangshiftProcessor extends AbstractProcessor {

    static final String TYPE = "langshift";

    private static final Map<IndexFacts, DocumentShift> KNOWN = Collections.synchronizedMap(new WeakHashMap<>());

    private static Detector detector;
    private static boolean sought;

    /** The detector of languages, read when it is first needed; null where the plugin came without one. */
    private static synchronized Detector detector() {
        if (!sought) {
            detector = Detector.load();
            sought = true;
        }
        return detector;
    }

    private final Node node;
    private final IngestService ingest;
    private final String first;

    private LangshiftProcessor(String tag, String description, Node node, IngestService ingest, String first) {
        super(tag, description);
        this.node = node;
        this.ingest = ingest;
        this.first = first;
    }

    static Processor.Factory factory(Node node, IngestService ingest) {
        return (factories, tag, description, config) -> new LangshiftProcessor(
            tag,
            description,
            node,
            ingest,
            ConfigurationUtils.readOptionalStringProperty(TYPE, tag, config, "pipeline")
        );
    }

    @Override
    public String getType() {
        return TYPE;
    }

    @Override
    public IngestDocument execute(IngestDocument document) {
        Map<String, Object> fields = document.getSourceAndMetadata();
        documents(fields).apply(fields, detector());
        return document;
    }

    @Override
    public void execute(IngestDocument document, BiConsumer<IngestDocument, Exception> handler) {
        if (first == null) {
            super.execute(document, handler);
            return;
        }
        Object before;
        Pipeline pipeline = ingest.getPipeline(first);
        try {
            Refused.when(pipeline == null, "There is no ingest pipeline " + first + ", which is to run first: create it.");
            Map<String, Object> fields = document.getSourceAndMetadata();
            DocumentShift documents = documents(fields);
            // It may encode the texts.
            documents.normalise(fields);
            before = documents.vectorOf(fields);
        } catch (RuntimeException error) {
            handler.accept(null, error);
            return;
        }
        document.executePipeline(pipeline, (made, error) -> {
            if (error != null || made == null) {
                handler.accept(made, error);
                return;
            }
            try {
                Map<String, Object> fields = made.getSourceAndMetadata();
                documents(fields).dropStamp(fields, before);
            } catch (RuntimeException refused) {
                handler.accept(null, refused);
                return;
            }
            super.execute(made, handler);
        });
    }

    /** What becomes of documents of the index that one is written to; of an alias, the index that it writes to. */
    private DocumentShift documents(Map<String, Object> fields) {
        String name = (String) fields.get(IngestDocument.Metadata.INDEX.getFieldName());
        ClusterState state = node.cluster.state();
        try {
            Index index = node.names.concreteWriteIndex(state, IndicesOptions.strictSingleIndexNoExpandForbidClosed(), name, false, true);
            IndexFacts facts = node.facts(state.metadata().getIndexSafe(index));
            return KNOWN.computeIfAbsent(facts, of -> new DocumentShift(of.meta, of.paged, of.keepsLengths()));
        } catch (IndexNotFoundException error) {
            throw Refused.because("There is no index " + name + ": create it first, say with `langshift ingest`.");
        }
    }
}
