package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.opensearch.common.xcontent.XContentFactory;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.xcontent.MediaTypeRegistry;
import org.opensearch.search.SearchHit;
import org.opensearch.search.builder.SearchSourceBuilder;

/** What a search found, as `langshift search --json` prints it: `SearchResult.to_dict` of `retrieval/hits.py`. */
final class SearchAnswer {

    private static final List<String> PLACE = List.of("ordinal", "start", "end", "count", "field");
    private static final String PARENT = "parent", CHUNK = "chunk";

    final List<String> notes = new ArrayList<>();
    Map<String, Object> facets = Map.of();
    Map<String, ShiftEffect> effects = Map.of();
    List<Rounds.Anchor> anchors = List.of();
    double bonus;
    /** What was sorted, `all` that match or the hits that were `found`; null where nothing was. */
    String sorted;
    /** By `_id` what is shown of a text. */
    Map<String, Map<String, Object>> snippets = Map.of();

    private final IndexFacts facts;
    private final SearchArguments given;
    private final String language;
    private List<Entry> found = List.of();
    private Map<String, List<Entry>> passages = Map.of();
    private final Map<String, Map<String, Object>> sources = new HashMap<>(), places = new HashMap<>();

    SearchAnswer(IndexFacts facts, SearchArguments given, String language) {
        this.facts = facts;
        this.given = given;
        this.language = language;
    }

    /** Takes what was found, and reads the fields of it all. */
    void read(Requests requests, List<Entry> entries, Map<String, List<Entry>> further) {
        found = entries;
        passages = further;
        Set<String> ids = new LinkedHashSet<>();
        for (Entry one : found) {
            ids.add(one.id);
            one.others.forEach(other -> ids.add(other.id));
        }
        passages.values().forEach(of -> of.forEach(one -> ids.add(one.id)));
        List<String> all = List.copyOf(ids);
        for (int start = 0; start < all.size(); start += facts.window) {
            read(requests, all.subList(start, Math.min(all.size(), start + facts.window)));
        }
        if (given.fields() != null && !found.isEmpty()) {
            Set<String> there = new HashSet<>();
            found.forEach(one -> source(one).keySet().forEach(field -> there.add(field.split("\\.")[0])));
            given.fields().stream().filter(field -> !field.contains("*") && !there.contains(field.split("\\.")[0]))
                .forEach(field -> notes.add("No hit has a field '" + field + "'."));
        }
    }

    private void read(Requests requests, List<String> ids) {
        SearchSourceBuilder body = new SearchSourceBuilder().query(SearchExecution.among(ids)).size(ids.size());
        if (given.fields() == null) {
            body.fetchSource(null, facts.embeddings.toArray(String[]::new));
        } else {
            List<String> wanted = new ArrayList<>(given.fields());
            wanted.addAll(facts.texts);
            wanted.add(facts.groupSource);
            body.fetchSource(wanted.toArray(String[]::new), null);
        }
        if (facts.cuts) {
            PLACE.forEach(one -> body.docValueField(CHUNK + "." + one));
        }
        for (SearchHit hit : requests.ask(body).getHits()) {
            Map<String, Object> source = hit.hasSource()
                ? XContentHelper.convertToMap(hit.getSourceRef(), true, MediaTypeRegistry.JSON).v2()
                : new LinkedHashMap<>();
            sources.put(hit.getId(), source);
            places.put(hit.getId(), facts.cuts ? place(hit, source) : null);
        }
    }

    /** Where in its document a chunk stands; null where it does not say. */
    private static Map<String, Object> place(SearchHit hit, Map<String, Object> source) {
        Map<String, Object> kept = IndexFacts.map(source.get(CHUNK)), made = new LinkedHashMap<>();
        for (String name : PLACE) {
            Object value = kept.get(name) != null ? kept.get(name) : Rounds.value(hit, CHUNK + "." + name, null);
            boolean number = !name.equals("field");
            if (number && value == null) {
                return null;
            }
            made.put(name, number ? (Object) (int) Double.parseDouble(value.toString()) : value);
        }
        return made;
    }

    /** That the similarity before the shift is not known of some, or of all. */
    void tellUnknownShifts(String name) {
        if (effects.values().stream().allMatch(one -> one.before() != null)) {
            return;
        }
        notes.add(
            facts.shift() != null ? "Some documents were shifted with language vectors other than the index's own."
                : "The similarity before the shift is not available: " + facts.index
                    + " does not store what is needed to reverse its shift exactly."
        );
    }

    /** Entry -> its text, of the hits that have one. */
    Map<String, String> texts() {
        Map<String, String> made = new LinkedHashMap<>();
        found.forEach(one -> made.put(one.id, words(one).get("text")));
        made.values().removeIf(String::isBlank);
        return made;
    }

    Collection<String> languages() {
        return found.stream().map(one -> one.language).collect(Collectors.toCollection(LinkedHashSet::new));
    }

    BytesReference json(ModeChoice choice, double took) throws IOException {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("index", facts.index);
        made.putAll(choice.setting().shown());
        made.put("mode_from", choice.origin());
        made.put("mode_reason", choice.reason());
        made.put("language", language);
        made.put("hits", found.stream().map(this::hit).toList());
        made.put("bonus", bonus);
        made.put("anchors", anchors.stream().map(SearchAnswer::anchor).toList());
        made.put("compared", effects.size());
        made.put("notes", notes);
        made.put("took", took);
        made.put("from", null);
        made.put("depth", 0);
        made.put("point_in_time", null);
        made.put("sorted", sorted);
        made.put("sorted_count", "found".equals(sorted) ? found.size() : null);
        made.put("facets", facets);
        return BytesReference.bytes(XContentFactory.jsonBuilder().map(made));
    }

    private static Map<String, Object> anchor(Rounds.Anchor one) {
        Map<String, Object> made = new LinkedHashMap<>(), evidence = new LinkedHashMap<>();
        evidence.put("words", one.words());
        evidence.put("cosine", one.cosine());
        evidence.put("own_language", one.own() ? 1.0 : 0.0);
        made.put("id", one.id());
        made.put("trust", one.trust());
        made.put("weight", one.weight());
        made.put("evidence", evidence);
        return made;
    }

    private Map<String, Object> hit(Entry one) {
        Map<String, Object> made = shown(one), legs = new LinkedHashMap<>();
        one.legs.forEach((name, leg) -> {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("score", leg.score());
            said.put("rank", leg.rank());
            legs.put(name, said);
        });
        List<Entry> further = passages.getOrDefault(one.documentKey(), List.of());
        made.put("snippet", snippets.get(one.id));
        made.put("group", Entry.group(facts.groupSource, sources.getOrDefault(one.id, Map.of())));
        made.put("legs", legs);
        made.put("others", one.others.stream().map(this::shown).toList());
        made.put("shift", effects.containsKey(one.id) ? effects.get(one.id).shown() : null);
        made.put("passages", further.stream().map(this::passage).toList());
        return made;
    }

    private Map<String, Object> shown(Entry one) {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("id", one.documentKey());
        made.put("score", one.score < 0 ? null : one.score);
        made.put("language", one.language);
        made.putAll(words(one));
        made.put("source", source(one));
        made.put("passage", facts.parent == null ? null : passage(one));
        return made;
    }

    private Map<String, Object> passage(Entry one) {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("id", one.id);
        made.put("score", one.score < 0 ? null : one.score);
        made.put("language", one.language);
        made.put("text", words(one).get("text"));
        made.put("place", places.get(one.id));
        return made;
    }

    /** Title and text, either of which may be empty. */
    private Map<String, String> words(Entry one) {
        Map<String, Object> source = sources.getOrDefault(one.id, Map.of());
        Map<String, String> made = new LinkedHashMap<>();
        made.put("title", facts.title == null ? "" : spoken(Fields.at(source, facts.title)));
        List<String> rest = facts.split ? facts.texts.stream().filter(name -> !name.equals(facts.title)).toList() : List.of(facts.mainText());
        made.put("text", rest.stream().map(name -> spoken(Fields.at(source, name))).filter(text -> !text.isEmpty()).collect(Collectors.joining(" ")));
        return made;
    }

    /** The words of a field: of several values all, of languages the first. */
    private static String spoken(Object value) {
        if (value instanceof Map<?, ?> several) {
            return spoken(several.values().stream().findFirst().orElse(null));
        }
        if (value instanceof List<?> several) {
            return several.stream().map(SearchAnswer::spoken).filter(text -> !text.isEmpty()).collect(Collectors.joining(" "));
        }
        return value == null ? "" : value.toString();
    }

    /** A document's own fields, as it came with them. */
    private Map<String, Object> source(Entry one) {
        Map<String, Object> own = copied(sources.getOrDefault(one.id, Map.of()));
        List<String> added = new ArrayList<>(facts.embeddings);
        added.addAll(List.of(facts.stamp, facts.confidence));
        if (facts.cuts) {
            added.addAll(List.of(PARENT, CHUNK));
        }
        if (given.fields() != null) {
            List<String> brought = new ArrayList<>(facts.texts);
            brought.add(facts.groupSource);
            brought.removeIf(name -> given.fields().stream().anyMatch(chosen -> (name + ".").startsWith(chosen + ".")));
            added.addAll(brought);
        } else if (!facts.split) {
            added.add(facts.language);
        }
        added.forEach(name -> Fields.remove(own, name));
        for (String name : facts.split ? facts.texts : List.<String>of()) {
            if (Fields.at(own, name) instanceof Map<?, ?> byLanguage) {
                Fields.put(own, name, byLanguage.values().stream().findFirst().orElse(null));
            }
        }
        return own;
    }

    private static Map<String, Object> copied(Map<String, Object> source) {
        Map<String, Object> made = new LinkedHashMap<>();
        source.forEach((name, value) -> made.put(name, value instanceof Map ? copied(IndexFacts.map(value)) : value));
        return made;
    }
}
