package org.langshift.opensearch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A document or chunk that was found, and the rules by which such are ranked. */
final class Entry {

    /** Where it is in its shard; -1 at the coordinating node, which knows it by its id. */
    final int document;
    final String id;
    /** Below 0 where it has none: no vector. */
    float score;
    String language = Languages.UND;
    /** The document that a chunk is of, and the group; null where it names none. */
    String parent, group;

    Entry(int document, String id, float score) {
        this.document = document;
        this.id = id;
        this.score = score;
    }

    private Object self() {
        return document < 0 ? id : document;
    }

    /** The document that this is, or is a part of. */
    Object documentKey() {
        return parent == null ? self() : parent;
    }

    /** The group, or a document without one. */
    Object groupKey() {
        return group == null ? List.of(documentKey()) : group;
    }

    /** The group that a document names, the first if it names several; null where it names none. */
    static String group(String path, Map<String, Object> source) {
        Object value = Fields.at(source, path);
        Object first = value instanceof List<?> several ? several.isEmpty() ? null : several.get(0) : value;
        return first == null ? null : first.toString();
    }

    static final Comparator<Entry> BY_SCORE = Comparator.comparingDouble(one -> -one.score);

    /** Best first; of equals the first stays first. */
    static List<Entry> ranked(Collection<Entry> entries) {
        return entries.stream().sorted(BY_SCORE).toList();
    }

    /** The first of each document, or of each group, in their order. */
    static List<Entry> firstOfEach(List<Entry> entries, boolean groups) {
        Map<Object, Entry> first = new LinkedHashMap<>();
        entries.forEach(one -> first.putIfAbsent(groups ? one.groupKey() : one.documentKey(), one));
        return new ArrayList<>(first.values());
    }

    /** The first few of each language, in their order. */
    static List<Entry> ofEachLanguage(List<Entry> entries, int most) {
        Map<String, Integer> seen = new HashMap<>();
        return entries.stream().filter(one -> seen.merge(one.language, 1, Integer::sum) <= most).toList();
    }

    /** Adds the bonus for the language to what has a score. */
    static void favour(List<Entry> entries, String language, double bonus) {
        for (Entry one : entries) {
            if (bonus != 0 && one.score >= 0 && one.language.equals(language) == bonus > 0) {
                one.score = (float) ((double) one.score + (float) Math.abs(bonus));
            }
        }
    }

    /** The members that are not found already, the best chunk of each document; of equals those in a language first. */
    static List<Entry> others(List<Entry> found, List<Entry> members, String language) {
        Set<Object> known = new HashSet<>();
        found.forEach(one -> known.add(one.documentKey()));
        Comparator<Entry> first = BY_SCORE.thenComparing(one -> !one.language.equals(language));
        return firstOfEach(members.stream().filter(one -> !known.contains(one.documentKey())).sorted(first).toList(), false);
    }

    /**
     * What stands for each group: its document in the searcher's language where it has one, else its best, with the score
     * of the best that was found.
     *
     * @param found best first
     * @param members further documents of these groups
     */
    static List<Entry> heads(List<Entry> found, List<Entry> members, String language) {
        Map<Object, List<Entry>> groups = new LinkedHashMap<>();
        found.forEach(one -> groups.computeIfAbsent(one.groupKey(), key -> new ArrayList<>()).add(one));
        // A document of several groups is in the first of them alone.
        members.forEach(one -> groups.getOrDefault(one.groupKey(), new ArrayList<>()).add(one));
        List<Entry> heads = new ArrayList<>();
        for (List<Entry> all : groups.values()) {
            List<Entry> ordered = ranked(all);
            Entry head = ordered.stream()
                .filter(one -> one.language.equals(language) && !language.equals(Languages.UND))
                .findFirst()
                .orElse(ordered.get(0));
            heads.add(new Entry(head.document, head.id, all.get(0).score));
        }
        return heads;
    }
}
