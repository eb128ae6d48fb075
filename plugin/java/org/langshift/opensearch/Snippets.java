package org.langshift.opensearch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.opensearch.core.common.text.Text;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.search.SearchHit;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.fetch.subphase.highlight.HighlightBuilder;
import org.opensearch.search.fetch.subphase.highlight.HighlightField;

/** What is shown of a hit's text: where words of the query stand, else its beginning: `retrieval/snippets.py` without an encoder. */
final class Snippets {

    // Characters of a snippet; a sentence is not broken for a few more. Of a text the server looks at so many.
    private static final int LENGTH = 160, MOST_ANALYZED = 100_000;
    // What the server puts around a word of the query.
    private static final String OPEN = "<mark>", CLOSE = "</mark>";

    /** @param marks where words stand, as the first character of each place and the one after its last */
    private record Snippet(String text, List<List<Integer>> marks, String by) {

        Map<String, Object> shown() {
            Map<String, Object> made = new LinkedHashMap<>();
            made.put("text", text);
            made.put("marks", marks);
            made.put("by", by);
            return made;
        }
    }

    private Snippets() {}

    /** Chooses what is shown of each hit of an answer; one request, where there are hits. */
    static void make(Requests requests, IndexFacts facts, SearchSpec spec, SearchAnswer answer) {
        Map<String, String> texts = answer.texts();
        Map<String, Map<String, Object>> made = new LinkedHashMap<>();
        texts.forEach((id, text) -> made.put(id, new Snippet(beginning(text.strip()), List.of(), "beginning").shown()));
        QueryBuilder words = texts.isEmpty() ? null : words(facts, spec, answer.languages());
        if (words != null) {
            for (SearchHit hit : requests.ask(body(facts, words, texts.keySet(), answer.languages())).getHits()) {
                Snippet best = null;
                for (HighlightField field : hit.getHighlightFields().values()) {
                    for (Text fragment : field.fragments()) {
                        Snippet one = marked(fragment.string());
                        // What has other marks than ours in it is no part of the text any more.
                        boolean fits = !one.marks.isEmpty() && texts.get(hit.getId()).contains(one.text);
                        best = fits && (best == null || one.marks.size() > best.marks.size()) ? one : best;
                    }
                }
                if (best != null) {
                    made.put(hit.getId(), best.shown());
                }
            }
        }
        answer.snippets = made;
    }

    private static QueryBuilder words(IndexFacts facts, SearchSpec spec, Collection<String> languages) {
        try {
            return WordsQuery.matching(facts, spec.text(), spec.language(), List.copyOf(languages));
        } catch (IllegalArgumentException tooMany) {
            // So many words mark everything.
            return null;
        }
    }

    private static SearchSourceBuilder body(IndexFacts facts, QueryBuilder words, Collection<String> ids, Collection<String> languages) {
        HighlightBuilder marks = new HighlightBuilder().highlightQuery(words).preTags(OPEN).postTags(CLOSE).numOfFragments(1)
            .order(HighlightBuilder.Order.SCORE).fragmentSize(LENGTH).maxAnalyzerOffset(MOST_ANALYZED);
        Stream<String> names = facts.split
            ? facts.texts.stream().filter(name -> !name.equals(facts.title)).flatMap(name -> languages.stream().map(tag -> name + "." + tag))
            : Stream.concat(
                Stream.of(facts.mainText()),
                languages.stream().filter(facts.analyzed::contains).map(tag -> facts.mainText() + "." + tag)
            );
        names.forEach(marks::field);
        return new SearchSourceBuilder().query(SearchExecution.among(ids)).size(ids.size()).fetchSource(false).highlighter(marks);
    }

    /** A fragment as the server marks it; words that touch, as those of scripts without spaces, are one place. */
    private static Snippet marked(String fragment) {
        String[] parts = fragment.split(OPEN, -1);
        StringBuilder text = new StringBuilder(parts[0]);
        List<List<Integer>> marks = new ArrayList<>();
        for (int i = 1; i < parts.length; i++) {
            int close = parts[i].indexOf(CLOSE), end = close < 0 ? parts[i].length() : close;
            int begin = text.codePointCount(0, text.length());
            int after = begin + parts[i].codePointCount(0, end);
            if (!marks.isEmpty() && marks.get(marks.size() - 1).get(1) == begin) {
                begin = marks.remove(marks.size() - 1).get(0);
            }
            marks.add(List.of(begin, after));
            text.append(parts[i], 0, end).append(close < 0 ? "" : parts[i].substring(close + CLOSE.length()));
        }
        return new Snippet(text.toString().stripTrailing(), marks, "words");
    }

    /** As much of a text as a snippet may have, to the end of a word where one ends soon. */
    private static String beginning(String text) {
        if (text.codePointCount(0, text.length()) <= LENGTH) {
            return text;
        }
        int[] codes = text.codePoints().limit(LENGTH + 1).toArray();
        int space = LENGTH;
        while (space >= LENGTH * 3 / 4 && codes[space] != ' ') {
            space--;
        }
        int end = space >= LENGTH * 3 / 4 ? space : LENGTH;
        return new String(codes, 0, end).stripTrailing();
    }
}
