package org.langshift.opensearch;

import java.io.IOException;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.opensearch.index.mapper.MappedFieldType;
import org.opensearch.index.query.BoolQueryBuilder;
import org.opensearch.index.query.MultiMatchQueryBuilder;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.index.query.QueryShardContext;

/** The search by words in the fields of languages: `matching` of `retrieval/dsl.py`. */
final class WordsQuery {

    // Clauses of one query that the server allows by default (indices.query.bool.max_clause_count is 1024).
    private static final int MOST_CLAUSES = 1000;
    // Thai and beyond, in Unicode's order: scripts without spaces may give a token a character.
    private static final int UNSPACED = 0x0e00;

    private WordsQuery() {}

    /**
     * The query in the fields of a language, and of the others.
     *
     * @param words in normal form
     * @param others most frequent first; as many are searched as the limit on clauses leaves room for
     */
    static QueryBuilder matching(IndexFacts facts, String words, String language, List<String> others) {
        Set<String> languages = new LinkedHashSet<>(List.of(language, Languages.UND));
        languages.addAll(others);
        QueryBuilder analyzed = byAnalyzer(facts, words, languages);
        if (analyzed != null) {
            return analyzed;
        }
        int room = requireRoom(facts, words);
        MultiMatchQueryBuilder made = match(facts, words, "", facts.split ? 0 : room);
        if (facts.split) {
            languages.stream().limit(room).forEach(tag -> addFields(made, facts, "." + tag, facts.texts.size()));
        }
        return made;
    }

    /** For how many languages, or fields, the limit on clauses leaves room; refuses words for which it leaves none. */
    static int requireRoom(IndexFacts facts, String words) {
        int together = facts.split ? facts.texts.size() : 1;
        int room = MOST_CLAUSES / (mostTokens(words) * together);
        Refused.when(
            room == 0,
            "The query has too many words for a lexical search: the limit is " + MOST_CLAUSES / together + "."
        );
        return room;
    }

    private static int roomOfAnalyzers(IndexFacts facts, String words) {
        // The filter by language is a clause, too.
        return Math.max(0, MOST_CLAUSES / (mostTokens(words) * facts.texts.size() + 1) - 1);
    }

    /** For how many languages there is room at least, beside that of the query and unknown ones. */
    static int roomForOthers(IndexFacts facts, String words) {
        return facts.analyzed.isEmpty() ? requireRoom(facts, words) - 1 : roomOfAnalyzers(facts, words);
    }

    private static MultiMatchQueryBuilder match(IndexFacts facts, String words, String view, int most) {
        MultiMatchQueryBuilder made = QueryBuilders.multiMatchQuery(words).type(MultiMatchQueryBuilder.Type.MOST_FIELDS);
        addFields(made, facts, view, most);
        return made;
    }

    private static void addFields(MultiMatchQueryBuilder made, IndexFacts facts, String view, int most) {
        facts.texts.stream().limit(most).forEach(name -> made.field(name + view, facts.weights.getOrDefault(name, 1.0).floatValue()));
    }

    /** A clause for each analyzed language, and one for all other documents; null where there is room for the last alone. */
    private static QueryBuilder byAnalyzer(IndexFacts facts, String words, Set<String> languages) {
        int room = roomOfAnalyzers(facts, words);
        List<String> tags = languages.stream().filter(facts.analyzed::contains).limit(room).toList();
        if (tags.isEmpty()) {
            return null;
        }
        BoolQueryBuilder made = QueryBuilders.boolQuery().minimumShouldMatch(1);
        for (String tag : tags) {
            QueryBuilder found = match(facts, words, "." + tag, Integer.MAX_VALUE);
            made.should(QueryBuilders.boolQuery().must(found).filter(QueryBuilders.termQuery(facts.language, tag)));
        }
        QueryBuilder found = match(facts, words, "", Integer.MAX_VALUE);
        return made.should(QueryBuilders.boolQuery().must(found).mustNot(QueryBuilders.termsQuery(facts.language, tags)));
    }

    /** About as many tokens as an analyzer can make of a query, or more: `_most_tokens` of `retrieval/dsl.py`. */
    static int mostTokens(String words) {
        int tokens = 0, kind = 0, wide = 0;
        int[] codes = (words + " ").codePoints().toArray();
        for (int one : codes) {
            int type = Character.getType(one);
            if (type == Character.NON_SPACING_MARK || type == Character.COMBINING_SPACING_MARK || type == Character.ENCLOSING_MARK) {
                continue;
            }
            int now = type == Character.DECIMAL_DIGIT_NUMBER ? 2
                : Character.isLetter(one) || type == Character.OTHER_NUMBER || type == Character.LETTER_NUMBER ? 1
                : 0;
            if (now != kind) {
                tokens += kind == 0 ? 0 : Math.max(1, wide);
                kind = now;
                wide = 0;
            }
            wide += now != 0 && one >= UNSPACED ? 1 : 0;
        }
        return Math.max(1, tokens);
    }

    /** How many different words the query has as the analyzer of its language parts it, at least 1. */
    static int count(IndexFacts facts, QueryShardContext context, String words, String language) throws IOException {
        // Where no document has a text in this language, only titles, there is no analyzer of its own.
        String name = !facts.split ? facts.texts.get(0) + (facts.analyzed.contains(language) ? "." + language : "")
            : facts.textLanguages.contains(language) ? facts.mainText() + "." + language
            : null;
        MappedFieldType type = name == null ? null : context.fieldMapper(name);
        Analyzer analyzer = type == null ? new StandardAnalyzer() : context.getSearchAnalyzer(type);
        Set<String> different = new HashSet<>();
        try (TokenStream stream = analyzer.tokenStream(name == null ? "" : name, words)) {
            CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
            stream.reset();
            while (stream.incrementToken()) {
                different.add(term.toString());
            }
            stream.end();
        }
        return Math.max(1, different.size());
    }
}
