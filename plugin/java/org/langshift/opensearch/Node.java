package org.langshift.opensearch;

import java.util.LinkedHashMap;
import java.util.Map;

import org.opensearch.cluster.metadata.IndexMetadata;
import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.util.concurrent.ThreadContext;

/** The services of a node; set once it has started. */
final class Node {

    // Indices whose mapping is known; more are read again.
    private static final int MOST_KNOWN = 256;

    volatile ClusterService cluster;
    volatile IndexNameExpressionResolver names;
    volatile ThreadContext threads;
    private final Map<String, IndexFacts> known = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, IndexFacts> eldest) {
            return size() > MOST_KNOWN;
        }
    };

    /** What an index says of itself; read again when its mapping changes. */
    IndexFacts facts(IndexMetadata index) {
        synchronized (known) {
            return known.compute(
                index.getIndexUUID(),
                (uuid, old) -> old != null && old.version == index.getMappingVersion() ? old : new IndexFacts(index)
            );
        }
    }
}
