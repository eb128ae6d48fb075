package org.langshift.opensearch;

/** What cannot be done, in a sentence for who asked: the server answers with status 400. */
final class Refused {

    private Refused() {}

    static IllegalArgumentException because(String why) {
        return new IllegalArgumentException("[" + LangshiftQueryBuilder.NAME + "] " + why);
    }

    static void when(boolean unfit, String why) {
        if (unfit) {
            throw because(why);
        }
    }
}
