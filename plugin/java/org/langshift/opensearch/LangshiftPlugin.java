package org.langshift.opensearch;

import java.util.Map;

import org.opensearch.ingest.Processor;
import org.opensearch.plugins.IngestPlugin;

/** The plugin `langshift`: the query and the ingest processor of that name. */
public final class LangshiftPlugin extends LangshiftSearchPlugin implements IngestPlugin {

    @Override
    public Map<String, Processor.Factory> getProcessors(Processor.Parameters parameters) {
        return Map.of(LangshiftProcessor.TYPE, LangshiftProcessor.factory(node, parameters.ingestService));
    }
}
