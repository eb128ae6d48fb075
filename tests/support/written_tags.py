"""Tags of languages as they are written."""

from langshift.languages import tag_tables

# As people and programs write them, right and wrong.
WRITTEN = """
jp kr cn ua gr dk cz se tl fil mo sh iw in ji nb nn no no-NO sr-Latn zh-cht zh-CHT-HK zh-CHT-CN zh-CHS zh-Hans zh_TW
zh-yue yue cmn mul zxx mis qaa qtz art x-default x-unknown en_US.UTF-8 en-US-u-ca-gregory i-klingon i-default
i-enochian zh-min zh-min-nan zh-min-nan-TW pt_BR PT-br EN english German deu ger ENG_Latn hbs bos tgl msa zsm ind heb
arb swa est ekk lav lvs nor nob azj uzn kmr pes prs npi ory gom sqi als sr-ME cnr cnr-Cyrl zh-HK zh-MO zh-Hant-HK
zh-Hant zh-Hant-CN zh-Hans-TW zh-Latn zh-Latn-pinyin cmn-Hant cmn-Hans-CN zho-TW yue-HK yue-CN yue-Hans wuu hak hak-TW
nan-TW de-1996 de-CH-1996 de-DE-1901 de-1901-1901 de-AT es-419 en-001 sl-rozaj en-GB-oed sgn-BE-FR no-bok no-nyn
cel-gaulish art-lojban zh-guoyu zh-hakka aa und und-Latn UND Und-Latn root C POSIX en-x-mine x-klingon en-foo de-txt
de@euro deDE de-de_DE ja_JP_JP th_TH_TH ar-EG arz ar-arz apc ary ar-Latn fa-AF ru-Latn hi-Latn ru- -ru ru--RU ru_ _ru
it;q=0.9 en,de en/de a 1 e1 12 419 1901 deutsch francais zh.TW pt-PT tr-TR tr-CY ko-KP ko-Hang ja-Hira ja-Jpan th-Thai
it-IT nl-BE pl-PL ar-SA iw-IL in-ID jw jv cmg deu_DEU eng-USA sr-Cyrl sr-Latn-RS sr-Latn-ME sh-Cyrl uz-Cyrl pa-Arab
az-Arab ur-Aran de-Latf zh-Hanb zh-Hant-XX de-Qqqq de-TW-Latn en-u en-a-b en-u-ca-u-nu zh-yue-cmn zh-cht-Hans aa-SAAHO
en-UK zh-AU zh-SG zh-158 kr-KR toolonglanguage
"""
SPELLINGS = [*WRITTEN.split(), " de ", "DE ", "\tde", "de\n", "ｄｅ", "de\u200b", "\u00a0de", "\u212ao", "", "  ", "dé"]


def every_spelling():
    """These, and what CLDR has of codes that are replaced, and of regions."""
    tables = tag_tables()
    return [*SPELLINGS, *tables["codes"], *tables["usual"], *(f"zh_Hant_{region}" for region in tables["regions"])]
