package org.langshift.opensearch;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

import org.opensearch.cluster.metadata.IndexMetadata;
import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.util.concurrent.ThreadContext;
import org.opensearch.core.common.io.stream.NamedWriteableRegistry;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.env.Environment;
import org.opensearch.env.NodeEnvironment;
import org.opensearch.index.IndexModule;
import org.opensearch.ingest.Processor;
import org.opensearch.plugins.IngestPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.SearchPlugin;
import org.opensearch.repositories.RepositoriesService;
import org.opensearch.script.ScriptService;
import org.opensearch.search.deciders.ConcurrentSearchRequestDecider;
import org.opensearch.search.fetch.FetchSubPhase;
import org.opensearch.threadpool.ThreadPool;
import org.opensearch.transport.client.Client;
import org.opensearch.watcher.ResourceWatcherService;

/** What the plugin brings: the query and the ingest processor `langshift`. */
public final class LangshiftPlugin extends Plugin implements IngestPlugin, SearchPlugin {

    /** What queries need of their node: parsers are made before it is there, and several nodes may share one JVM. */
    private final Node node = new Node();

    /** The services of a node; set once it has started. */
    static final class Node {
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

        private Detector detector;
        private boolean sought;

        /** The detector of languages, read when it is first needed; null where the plugin came without one. */
        synchronized Detector detector() {
            if (!sought) {
                detector = Detector.load();
                sought = true;
            }
            return detector;
        }

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

    @Override
    public Collection<Object> createComponents(
        Client client,
        ClusterService clusterService,
        ThreadPool threadPool,
        ResourceWatcherService resourceWatcherService,
        ScriptService scriptService,
        NamedXContentRegistry xContentRegistry,
        Environment environment,
        NodeEnvironment nodeEnvironment,
        NamedWriteableRegistry namedWriteableRegistry,
        IndexNameExpressionResolver indexNameExpressionResolver,
        Supplier<RepositoriesService> repositoriesServiceSupplier
    ) {
        node.cluster = clusterService;
        node.names = indexNameExpressionResolver;
        node.threads = threadPool.getThreadContext();
        return List.of();
    }

    @Override
    public void onIndexModule(IndexModule index) {
        index.addSearchOperationListener(new DocumentSecurity(node));
    }

    @Override
    public Map<String, Processor.Factory> getProcessors(Processor.Parameters parameters) {
        return Map.of(LangshiftProcessor.TYPE, LangshiftProcessor.factory(node, parameters.ingestService));
    }

    @Override
    public List<FetchSubPhase> getFetchSubPhases(FetchPhaseConstructionContext context) {
        return List.of(new VectorsFetch());
    }

    @Override
    public Optional<ConcurrentSearchRequestDecider.Factory> getConcurrentSearchRequestDeciderFactory() {
        return Optional.of(new ConcurrentSearch.Factory());
    }

    @Override
    public List<QuerySpec<?>> getQueries() {
        return List.of(
            new QuerySpec<>(
                LangshiftQueryBuilder.NAME,
                in -> new LangshiftQueryBuilder(in, node),
                parser -> LangshiftQueryBuilder.fromXContent(parser, node)
            )
        );
    }
}
