"""Values that fill the templates of pii_data.py, by language.

Names come from Faker's locales and, where those are thin or wrong, from short
lists here. Cities and organisations are mixed: invented ones from Faker, so
that the tagger reads the context, and real ones, so that it knows them.
"""
from faker import Faker

# The locales whose names stand in a text of a language. English text names
# people from everywhere, with Latin letters.
LATIN = ("en_US en_US en_US en_GB en_GB en_IE en_CA en_AU en_NZ en_IN en_NG en_PH de_DE de_AT fr_FR fr_CA es_ES es_MX es_AR it_IT "
         "pt_BR pt_PT nl_NL sv_SE da_DK no_NO fi_FI pl_PL cs_CZ sk_SK hu_HU ro_RO tr_TR id_ID hr_HR sl_SI lt_LT lv_LV "
         "et_EE is_IS vi_VN zu_ZA yo_NG tw_GH az_AZ sq_AL").split()
LOCALES = {
    "en": LATIN, "de": ["de_DE", "de_DE", "de_AT", "de_CH", "tr_TR", "pl_PL", "en_US"], "fr": ["fr_FR", "fr_FR", "fr_BE", "fr_CA", "en_GB"],
    "es": ["es_ES", "es_MX", "es_AR", "es_CO", "es_CL"], "pt": ["pt_BR", "pt_BR", "pt_PT"], "it": ["it_IT"], "nl": ["nl_NL", "nl_BE", "en_GB"],
    "pl": ["pl_PL"], "sv": ["sv_SE", "fi_FI"], "da": ["da_DK"], "tr": ["tr_TR"], "id": ["id_ID"], "vi": ["vi_VN"], "cs": ["cs_CZ"],
    "ru": ["ru_RU"], "uk": ["uk_UA"], "ar": ["ar_SA", "ar_EG"], "hi": ["hi_IN"], "zh": ["zh_CN", "zh_CN", "zh_CN", "zh_TW"],
    "ja": ["ja_JP"], "ko": ["ko_KR"], "el": ["el_GR"], "he": ["he_IL"], "th": ["th_TH"], "fa": ["fa_IR"], "ro": ["ro_RO"], "hu": ["hu_HU"],
}

CITIES = {
    "en": """London|New York|Paris|Tokyo|Berlin|Madrid|Rome|Sydney|Toronto|Chicago|San Francisco|Los Angeles|Boston|Seattle|Austin|Denver|Miami|
Dallas|Houston|Atlanta|Manchester|Birmingham|Leeds|Glasgow|Edinburgh|Dublin|Belfast|Cardiff|Bristol|Liverpool|Mumbai|Delhi|Bangalore|Chennai|Kolkata|
Lagos|Nairobi|Cairo|Accra|Johannesburg|Cape Town|Singapore|Hong Kong|Beijing|Shanghai|Shenzhen|Seoul|Osaka|Kyoto|Bangkok|Hanoi|Jakarta|Manila|Melbourne|
Auckland|Wellington|Vancouver|Montreal|Mexico City|Buenos Aires|Santiago|Lima|Bogotá|São Paulo|Rio de Janeiro|Lisbon|Porto|Barcelona|Valencia|Milan|
Naples|Turin|Vienna|Zurich|Geneva|Brussels|Antwerp|Amsterdam|Rotterdam|Copenhagen|Oslo|Stockholm|Gothenburg|Helsinki|Warsaw|Kraków|Prague|Budapest|
Athens|Istanbul|Ankara|Moscow|Kyiv|Tel Aviv|Jerusalem|Dubai|Riyadh|Doha|Tehran|Karachi|Lahore|Dhaka|Kathmandu|Portland|Phoenix|Philadelphia|San Diego|
Oakland|Nashville|Columbus|Charlotte|Salt Lake City|St. Louis|New Orleans|Ann Arbor|Palo Alto|Brooklyn|Queens|Oxford|Cambridge|York|Bath|Reading|Mobile""",
    "zh": "北京|上海|广州|深圳|杭州|南京|成都|武汉|西安|重庆|天津|苏州|青岛|长沙|郑州|厦门|大连|沈阳|哈尔滨|昆明|济南|合肥|福州|贵阳|海口|三亚|兰州|太原|香港|澳门|台北|高雄|纽约|伦敦|东京|巴黎|新加坡|悉尼|首尔|洛杉矶|多伦多",
    "ja": "東京|大阪|京都|名古屋|札幌|福岡|神戸|横浜|仙台|広島|那覇|金沢|奈良|鎌倉|千葉|渋谷|ニューヨーク|パリ|ロンドン|北京",
    "ko": "서울|부산|대구|인천|광주|대전|울산|수원|제주|전주|강릉|포항|파주|뉴욕|도쿄|파리",
    "de": "Berlin|Hamburg|München|Köln|Frankfurt|Stuttgart|Leipzig|Dresden|Bremen|Hannover|Wien|Graz|Zürich|Bern|Bonn|Freiburg|Essen|Paris|Rom|London|Salzburg|Kiel",
    "fr": "Paris|Lyon|Marseille|Toulouse|Nantes|Lille|Bordeaux|Strasbourg|Nice|Rennes|Montpellier|Bruxelles|Genève|Montréal|Québec|Dakar|Casablanca|Londres|Berlin",
    "es": "Madrid|Barcelona|Sevilla|Valencia|Bilbao|Zaragoza|Málaga|Granada|Ciudad de México|Guadalajara|Bogotá|Medellín|Lima|Quito|Santiago|Buenos Aires|Córdoba|Montevideo|La Habana|Nueva York",
    "pt": "Lisboa|Porto|Coimbra|Braga|São Paulo|Rio de Janeiro|Brasília|Salvador|Recife|Curitiba|Porto Alegre|Fortaleza|Manaus|Luanda|Maputo|Londres",
    "it": "Roma|Milano|Napoli|Torino|Palermo|Genova|Bologna|Firenze|Venezia|Verona|Bari|Catania|Trieste|Parigi|Londra|Lugano",
    "nl": "Amsterdam|Rotterdam|Utrecht|Den Haag|Eindhoven|Groningen|Leiden|Antwerpen|Gent|Brugge|Delft|Haarlem|Parijs|Londen",
    "pl": "Warszawa|Kraków|Gdańsk|Wrocław|Poznań|Łódź|Lublin|Katowice|Szczecin|Berlin|Praga", "sv": "Stockholm|Göteborg|Malmö|Uppsala|Lund|Umeå|Köpenhamn|Oslo",
    "da": "København|Aarhus|Odense|Aalborg|Esbjerg|Malmø", "tr": "İstanbul|Ankara|İzmir|Bursa|Antalya|Konya|Londra|Berlin", "cs": "Praha|Brno|Ostrava|Plzeň|Vídeň",
    "id": "Jakarta|Bandung|Surabaya|Medan|Yogyakarta|Denpasar|Makassar|Singapura", "vi": "Hà Nội|Đà Nẵng|Huế|Cần Thơ|Hải Phòng|Nha Trang|Tokyo",
    "ru": "Москва|Казань|Самара|Омск|Пермь|Сочи|Тверь|Минск|Киев|Париж", "uk": "Київ|Львів|Одеса|Харків|Дніпро|Варшава", "ar": "القاهرة|الرياض|دبي|بيروت|عمان|بغداد|تونس|الدوحة|جدة|باريس",
    "hi": "दिल्ली|मुंबई|जयपुर|लखनऊ|पटना|भोपाल|पुणे|कानपुर|लंदन", "el": "Αθήνα|Θεσσαλονίκη|Πάτρα|Ηράκλειο|Λονδίνο", "he": "תל אביב|ירושלים|חיפה|אילת|לונדון",
    "th": "กรุงเทพ|เชียงใหม่|ภูเก็ต|ขอนแก่น|โตเกียว", "fa": "تهران|اصفهان|شیراز|تبریز|پاریس", "ro": "București|Cluj-Napoca|Iași|Timișoara|Brașov", "hu": "Budapest|Debrecen|Szeged|Pécs|Bécs",
}
REGIONS = {"en": "California|Texas|Florida|Bavaria|Scotland|Wales|Ontario|Punjab|Tuscany|Normandy|Catalonia|Queensland|Kerala|New South Wales|Ohio|New Jersey|Sichuan|Hokkaido|Siberia|Patagonia",
           "zh": "广东|四川|浙江|江苏|山东|云南|湖南|福建|河北|新疆|西藏|内蒙古|广西|台湾"}
COUNTRIES = {"zh": "中国|美国|英国|法国|德国|日本|韩国|泰国|越南|印度|加拿大|澳大利亚|意大利|西班牙|巴西|埃及|俄罗斯|新西兰|马来西亚",
             "ar": "مصر|السعودية|الأردن|المغرب|تونس|لبنان|العراق|فرنسا|ألمانيا|اليابان", "ja": "日本|中国|韓国|アメリカ|フランス|ドイツ|イタリア|タイ|カナダ|ブラジル",
             "pl": "Polska|Niemcy|Francja|Czechy|Ukraina|Włochy", "vi": "Việt Nam|Nhật Bản|Hàn Quốc|Pháp|Đức|Mỹ", "fr": "France|Allemagne|Espagne|Italie|Sénégal|Canada|Belgique|Suisse|Maroc|Japon",
             "id": "Indonesia|Malaysia|Jepang|Korea Selatan|Belanda|Australia", "hi": "भारत|नेपाल|जापान|जर्मनी|अमेरिका|फ्रांस"}
ORGS = {
    "en": """Google|Microsoft|Amazon|Apple|IBM|Intel|Siemens|Toyota|Samsung|Sony|Nestlé|Unilever|Pfizer|Novartis|Goldman Sachs|JPMorgan Chase|Wells Fargo|
HSBC|Barclays|Deloitte|KPMG|McKinsey & Company|Accenture|Walmart|Target|Costco|IKEA|Ford|Tesla|Boeing|Airbus|NASA|NATO|the World Health Organization|UNICEF|
the Red Cross|Greenpeace|Amnesty International|FIFA|the FBI|the BBC|CNN|Reuters|The New York Times|Stanford University|MIT|Harvard|University of Oxford|
the European Commission|the Federal Reserve|Netflix|Spotify|OpenAI|Adobe|Oracle|Salesforce|Uber|Airbnb|Starbucks|McDonald's|Morgan Stanley|Arsenal|Real Madrid|
the Chicago Bulls|Manchester United|Mercy Hospital|Johns Hopkins|Mayo Clinic|Ernst & Young|Philip Morris|Johnson & Johnson|Procter & Gamble|Marks & Spencer""",
    "zh": "腾讯|阿里巴巴|百度|华为|小米|字节跳动|京东|美团|中国移动|中国银行|工商银行|招商银行|清华大学|北京大学|复旦大学|浙江大学|协和医院|新华社|联合国|微软|谷歌|苹果公司|特斯拉|比亚迪|国家电网|中石油",
    "ja": "トヨタ自動車|ソニー|任天堂|三菱商事|東京大学|京都大学|日本銀行|楽天|ソフトバンク|国連|NHK|日立製作所",
    "ko": "삼성전자|현대자동차|네이버|카카오|서울대학교|한국은행|LG전자|연세대학교",
    "ru": "Газпром|Яндекс|Сбербанк|МГУ|ООН|Аэрофлот|РЖД", "ar": "أرامكو|جامعة القاهرة|الأمم المتحدة|بنك مصر|قناة الجزيرة", "hi": "टाटा|रिलायंस|इसरो|भारतीय स्टेट बैंक|दिल्ली विश्वविद्यालय",
}
NRP = {
    "en": """American|British|French|German|Spanish|Italian|Chinese|Japanese|Indian|Brazilian|Mexican|Canadian|Australian|Nigerian|Egyptian|Turkish|Polish|Swedish|
Norwegian|Danish|Dutch|Greek|Russian|Ukrainian|Korean|Thai|Vietnamese|Irish|Scottish|Welsh|Catholic|Protestant|Muslim|Jewish|Hindu|Buddhist|Sikh|Mormon|
Christian|Republican|Democrat|Conservative|Kurdish|Catalan|Basque|Māori|Cherokee|Portuguese|Hungarian|Czech|Romanian|Pakistani|Kenyan|Ghanaian|Cuban|Chilean""",
    "de": "Deutsche|Franzose|Türkin|Österreicher|Katholik|Muslimin|Schweizer|Italienerin|Polin|Grieche|Syrer", "fr": "Français|Italienne|Marocain|catholique|musulmane|Belge|Québécois|Espagnole",
    "es": "mexicano|argentina|española|colombiano|católico|judía|peruano|chilena|francés", "pt": "brasileiro|português|angolana|católica|francês", "it": "italiano|francese|tedesca|cattolica|albanese",
    "zh": "中国人|美国人|日本人|法国人|汉族|回族|藏族|维吾尔族|穆斯林|佛教徒|基督徒|韩国人", "ja": "日本人|中国人|アメリカ人|フランス人|キリスト教徒", "ko": "한국인|미국인|일본인|천주교|불교",
    "nl": "Nederlander|Belg|Duitser|katholiek|Fries|Surinaamse", "ru": "русский|татарин|француз|немка|православный", "pl": "Polak|Niemiec|katolik|Ukrainka",
}
HONORIFICS = {"en": "Mr.|Mrs.|Ms.|Dr.|Prof.|Miss|Sir|Mr|Mrs|Dr|Professor|Rev.|Judge|Senator|Captain", "de": "Herr|Frau|Dr.|Prof.|Frau Dr.", "fr": "M.|Mme|Dr|Mlle|Madame|Monsieur|Maître",
              "es": "Sr.|Sra.|Dr.|Dra.|Don|Doña|Ing.", "pt": "Sr.|Sra.|Dr.|Dra.|Prof.", "it": "Sig.|Sig.ra|Dott.|Dott.ssa|Avv.|Ing.", "nl": "Dhr.|Mevr.|Dr.|Mevrouw|Meneer",
              "pl": "Pan|Pani|dr", "sv": "Herr|Fru|Dr", "da": "Hr.|Fru", "tr": "Sayın|Dr.|Av.", "ru": "г-н|г-жа|доктор|профессор", "id": "Bapak|Ibu|Dr.", "vi": "Ông|Bà|TS."}
# What follows a Chinese or Japanese or Korean name.
SUFFIXES = {"zh": "先生|女士|老师|医生|教授|经理|同学|律师|主任|总", "ja": "さん|様|先生|部長|教授|くん", "ko": "씨|님|교수님|선생님|과장님"}
JOBS = {"en": None, "de": None, "fr": None, "zh": "工程师|会计|护士|律师|教师|销售经理|产品经理|设计师|翻译|司机|厨师|记者|药剂师|项目主管|人事专员",
        "es": "contable|enfermera|ingeniero|abogada|maestro|camarero|periodista|arquitecta|electricista", "pt": "enfermeira|engenheiro|advogada|contador|professor|motorista",
        "it": "infermiera|ingegnere|avvocato|cuoco|commercialista|giornalista|architetto", "nl": "verpleegkundige|boekhouder|leraar|monteur|advocaat"}
WEEKDAYS = {"en": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday", "de": "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag", "fr": "lundi|mardi|mercredi|jeudi|vendredi|samedi",
            "es": "lunes|martes|miércoles|jueves|viernes|sábado", "pt": "segunda-feira|terça-feira|quarta-feira|sexta-feira|sábado", "it": "lunedì|martedì|giovedì|venerdì|sabato",
            "zh": "星期一|周二|周三|星期五|周六|周日", "ja": "月曜日|火曜日|金曜日|土曜日", "ko": "월요일|수요일|금요일|토요일", "nl": "maandag|dinsdag|donderdag|vrijdag", "ru": "понедельник|вторник|четверг|пятницу"}
MONTHS = {"en": "January|February|March|April|May|June|July|August|September|October|November|December", "de": "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
          "fr": "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre", "es": "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
          "pt": "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro", "it": "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
          "nl": "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december", "ru": "января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"}
# Names of Chinese people as they stand in Latin text.
PINYIN_LAST = "Wang Li Zhang Liu Chen Yang Huang Zhao Wu Zhou Xu Sun Ma Zhu Hu Guo He Lin Gao Luo Zheng Liang Xie Song Tang Han Feng Deng Cao Peng Zeng Xiao Tian Dong Pan Yuan Cai Jiang Yu Du Ye Cheng Wei Su Lu Ding Ren Shen".split()
PINYIN_FIRST = "Wei Fang Na Min Jing Li Qiang Lei Jun Yang Yong Jie Tao Ming Chao Xia Ping Gang Yan Hui Xin Mei Ting Bo Hao Yu Xiaoming Xiaohong Jianguo Zhiyuan Ruoxi Zihan Yutong Haoran Meiling Guoqiang Lihua Jiayi Xueqin Wenbo Siyuan Yifan".split()
ARABIC_FIRST = "Ahmed Mohammed Ali Omar Hassan Youssef Khalid Ibrahim Fatima Aisha Layla Noor Zainab Mariam Samira Huda Tariq Bilal Karim Yasmin Rania Nadia Amira Salma Mustafa".split()
ARABIC_LAST = "Al-Rashid El-Sayed Hassan Khalil Mansour Haddad Farouk Nasser Saleh Aziz Abdallah Al-Fayed Qureshi Siddiqui Khan Malik Hussain Rahman Chowdhury Ben Ali Bensalem Bouazizi Darwish".split()
INDIAN_FIRST = "Priya Rahul Ananya Vikram Sunita Arjun Deepika Rohan Kavya Sanjay Meera Aditya Lakshmi Ravi Pooja Nikhil Divya Suresh Neha Amit Harpreet Gurpreet Aarav Ishaan".split()
INDIAN_LAST = "Sharma Patel Iyer Reddy Nair Gupta Singh Kaur Mehta Desai Kapoor Banerjee Mukherjee Chatterjee Rao Menon Pillai Joshi Kulkarni Verma Agarwal Bhatt Choudhury Naidu".split()
JAPANESE = "Sato Suzuki Takahashi Tanaka Watanabe Ito Yamamoto Nakamura Kobayashi Kato Yoshida Yamada Sasaki Matsumoto Inoue Kimura Hayashi Shimizu Mori Abe".split()
JAPANESE_FIRST = "Yuki Haruto Sakura Hina Ren Aoi Kenji Hiroshi Takeshi Naoko Yumi Akira Satoshi Emi Kaori Daichi Mei Riku Kazuo Tomoko".split()
KOREAN = "Kim Lee Park Choi Jung Kang Cho Yoon Jang Lim Han Oh Seo Shin Kwon Hwang Ahn Song Yoo Hong".split()
KOREAN_FIRST = "Min-jun Seo-yeon Ji-woo Ha-eun Do-yun Soo-jin Hyun-woo Eun-ji Jae-hyun Yuna Minho Jisoo Taeyang Hyejin Sungmin".split()
# Nothing personal, though often capitalised or named after people.
PRODUCTS = """Ford Focus|Mercedes GLA|iPhone 15|Galaxy S24|PlayStation 5|Windows 11|Jack Daniel's|Johnnie Walker|Harley-Davidson|Tesla Model 3|Dell XPS 13|Alexa|Siri|Cortana|Claude|
Ben & Jerry's|Dr Pepper|Levi's 501|Chuck Taylors|Doc Martens|Calvin Klein underwear|Louis Vuitton bag|Dolby Atmos|Kindle|Photoshop|Fitbit Charge|Nintendo Switch|Roomba|GitHub Copilot""".replace("\n", "")
WORKS = """Harry Potter and the Goblet of Fire|Forrest Gump|Jane Eyre|Anna Karenina|Romeo and Juliet|Moby-Dick|The Great Gatsby|Emma|Rebecca|Doctor Zhivago|Tom Sawyer|Jerry Maguire|
Erin Brockovich|Oliver Twist|Hamlet|Macbeth|Breaking Bad|The Marvelous Mrs. Maisel|Ted Lasso|Better Call Saul|Hey Jude|Billie Jean|Roxanne|Jolene|John Wick: Chapter 4""".replace("\n", "")
LAWS = "Newton's laws|Ohm's law|Bayes' theorem|Euler's formula|the Gaussian distribution|a Markov chain|Parkinson's disease|Alzheimer's|the Pythagorean theorem|Moore's law|the Fourier transform|Stockholm syndrome|Murphy's law|Maxwell's equations|a Turing machine|the Fibonacci sequence"


def split(text):
    return [part.strip() for part in text.replace("\n", "").split("|")]


class Source:
    """Makes values for slots. make returns pieces [(text, norm or None)]."""

    def __init__(self, rng, seed):
        self.rng, self.lang = rng, "en"
        self.fakers = {}
        for locale in {name for names in LOCALES.values() for name in names}:
            self.fakers[locale] = Faker(locale)
            self.fakers[locale].seed_instance(f"{seed}-{locale}")

    def faker(self):
        return self.fakers[self.rng.choice(LOCALES[self.lang])]

    def pick(self, table, fallback="en"):
        return self.rng.choice(split(table.get(self.lang) or table[fallback]))

    def make(self, kind, number, known):
        """number ties slots of one person: [[first.1]] and [[last.1]] are
        parts of [[person.1]]."""
        if kind in ("first", "last", "person", "person_comma") and number:
            if ("name", number) not in known:
                known["name", number] = self.name()
            first, last = known["name", number]
            return {"first": [(first, "PERSON")], "last": [(last, "PERSON")], "person": self.full(first, last),
                    "person_comma": [(f"{last}, {first}", "PERSON")]}[kind]
        return getattr(self, kind)()

    # People.

    def name(self):
        """Returns a first and a last name."""
        if self.lang == "en" and self.rng.random() < 0.3:
            firsts, lasts = self.rng.choice([(PINYIN_FIRST, PINYIN_LAST), (ARABIC_FIRST, ARABIC_LAST), (INDIAN_FIRST, INDIAN_LAST),
                                             (JAPANESE_FIRST, JAPANESE), (KOREAN_FIRST, KOREAN)])
            return self.rng.choice(firsts), self.rng.choice(lasts)
        fake = self.faker()
        return fake.first_name().strip(), fake.last_name().strip()

    def full(self, first, last):
        if self.lang in ("zh", "ja", "ko"):
            space = " " if self.lang == "ja" and self.rng.random() < 0.3 else ""
            return [(last + space + first, "PERSON")]
        if self.lang in ("hu", "vi"):
            return [(f"{last} {first}", "PERSON")]
        chance = self.rng.random()
        if self.lang == "en" and chance < 0.08:
            return [(f"{first} {self.rng.choice('ABCDEFGHJKLMNPRSTW')}. {last}", "PERSON")]
        if self.lang == "en" and chance < 0.10:
            return [(f"{first} {last} {self.rng.choice(['Jr.', 'III', 'II', 'Sr.'])}", "PERSON")]
        if self.lang == "en" and chance < 0.12:
            return [(f"{first[0]}. {last}", "PERSON")]
        if self.lang == "en" and chance < 0.16:
            return [(f"{first} {self.name()[0]} {last}", "PERSON")]
        return [(f"{first} {last}", "PERSON")]

    def person(self):
        return self.full(*self.name())

    def person_comma(self):
        first, last = self.name()
        return [(f"{last}, {first}", "PERSON")]

    def first(self):
        return [(self.name()[0], "PERSON")]

    def last(self):
        return [(self.name()[1], "PERSON")]

    def honorific(self):
        return [(self.pick(HONORIFICS), "TITLE")]

    def suffix(self):
        return [(self.pick(SUFFIXES, "zh"), "TITLE")]

    def job(self):
        jobs = JOBS.get(self.lang, "")
        if jobs:
            return [(self.rng.choice(split(jobs)), "TITLE")]
        name = self.fakers[{"de": "de_DE", "fr": "fr_FR"}.get(self.lang, "en_US")].job()
        if self.lang == "en" and ", " in name:
            last, first = name.split(", ", 1)
            name = f"{first} {last}"
        return [(name if self.rng.random() < 0.5 or self.lang == "de" else name.lower(), "TITLE")]

    def nrp(self):
        return [(self.pick(NRP), "NRP")]

    # Places and organisations.

    def city(self):
        if self.lang in ("en", "de", "es", "fr", "it", "pt", "nl", "pl", "sv", "da", "cs") and self.rng.random() < 0.35:
            return [(self.faker().city().strip(), "LOCATION")]
        return [(self.pick(CITIES), "LOCATION")]

    def region(self):
        return [(self.pick(REGIONS) if self.lang in REGIONS else self.city()[0][0], "LOCATION")]

    def country(self):
        if self.lang in COUNTRIES:
            return [(self.pick(COUNTRIES), "LOCATION")]
        locale = {"en": "en_US"}.get(self.lang) or LOCALES[self.lang][0]
        return [(self.fakers[locale].country().strip(), "LOCATION")]

    def org(self):
        if self.rng.random() < 0.45 and (self.lang in ORGS or self.lang not in ("zh", "ja", "ko", "ru", "ar", "hi", "el", "he", "th", "fa", "uk")):
            name = self.pick(ORGS)
            # The article is no part of the name.
            if name.startswith("the "):
                return [("the ", None), (name[4:], "ORG")]
            return [(name, "ORG")]
        return [(self.faker().company().strip(), "ORG")]

    def street(self):
        if self.lang == "zh":
            road = self.rng.choice(["中山", "人民", "解放", "建设", "和平", "南京", "长江", "学院", "文化", "新华", "世纪", "朝阳", "青年", "滨海"])
            text = f"{self.rng.choice(['', '东城区', '浦东新区', '西湖区', '天河区', '高新区'])}{road}{self.rng.choice(['路', '东路', '大街', '西街', '大道', '北路'])}{self.rng.randint(1, 999)}号"
            if self.rng.random() < 0.5:
                text += f"{self.rng.randint(1, 30)}栋{self.rng.randint(101, 2805)}室"
            return [(text, "ADDRESS")]
        text = self.faker().street_address().replace("\n", ", ").strip()
        return [(text, "ADDRESS")]

    def zip(self):
        fake = self.faker()
        return [((fake.postcode() if hasattr(fake, "postcode") else self.fakers["en_US"].postcode()).strip(), "ZIP_CODE")]

    # Time.

    def date(self):
        rng, day, month, year = self.rng, self.rng.randint(1, 28), self.rng.randint(1, 12), self.rng.randint(1930, 2027)
        if self.lang in ("zh", "ja"):
            forms = [f"{year}年{month}月{day}日", f"{month}月{day}日", f"{year}-{month:02}-{day:02}", f"{year}年{month}月"]
        elif self.lang == "ko":
            forms = [f"{year}년 {month}월 {day}일", f"{month}월 {day}일", f"{year}.{month:02}.{day:02}"]
        else:
            name = split(MONTHS.get(self.lang, MONTHS["en"]))[month - 1]
            of = " de " if self.lang in ("es", "pt") else " "
            forms = [f"{year}-{month:02}-{day:02}", f"{day:02}/{month:02}/{year}", f"{day}.{month}.{year}"]
            if self.lang in MONTHS:
                forms += [f"{day}{'.' if self.lang == 'de' else ''}{of}{name}{of}{year}"] * 2 + [f"{day}{'.' if self.lang == 'de' else ''}{of}{name}"]
            if self.lang == "en":
                forms += [f"{name} {day}, {year}", f"{name} {day}", f"{name[:3]} {day}", f"{name} {year}", f"{month}/{day}/{year}", f"{day} {name}"]
        return [(rng.choice(forms), "DATE_TIME")]

    def year(self):
        return [(str(self.rng.randint(1940, 2027)), "DATE_TIME")]

    def weekday(self):
        return [(self.pick(WEEKDAYS), "DATE_TIME")]

    def time(self):
        hour, minute = self.rng.randint(1, 12), self.rng.choice(["00", "15", "30", "45", "20"])
        forms = [f"{hour}:{minute} am", f"{hour} pm", f"{hour}:{minute} PM", f"{hour}pm"] if self.lang == "en" else [f"{hour + 8}:{minute}:00"]
        return [(self.rng.choice(forms), "DATE_TIME")]

    def stamp(self):
        rng = self.rng
        return [(f"{rng.randint(2015, 2026)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}", "DATE_TIME")]

    def age(self):
        return [(str(self.rng.randint(2, 98)), "AGE")]

    # Structured values: the rules find them, the tagger must not be lost in them.

    def email(self):
        return [(self.fakers["en_US"].email(), "EMAIL")]

    def phone(self):
        fake = self.faker()
        if not hasattr(fake, "phone_number"):
            fake = self.fakers["en_US"]
        return [(fake.phone_number().strip(), "PHONE")]

    def url(self):
        return [(self.fakers["en_US"].url(), "DOMAIN_NAME")]

    def card(self):
        return [(self.fakers["en_US"].credit_card_number(), "CREDIT_CARD")]

    def iban(self):
        return [(self.fakers[self.rng.choice(["de_DE", "en_GB", "fr_FR"])].iban(), "IBAN")]

    def ip(self):
        return [(self.fakers["en_US"].ipv4(), "IP")]

    # Nothing personal.

    def handle(self):
        return [("@" + self.fakers["en_US"].user_name(), None)]

    def hashtag(self):
        return [("#" + self.rng.choice(["MondayMotivation", "MadeByMary", "NBA", "throwback", "TeamJacob", "nowplaying", "fail", "LondonCalling"]), None)]

    def login(self):
        return [(self.fakers["en_US"].user_name(), None)]

    def number(self):
        return [(str(self.rng.choice([self.rng.randint(2, 40), self.rng.randint(100, 99999)])), None)]

    def order(self):
        return [(self.fakers["en_US"].bothify("??-######").upper(), None)]

    def product(self):
        return [(self.rng.choice(split(PRODUCTS)), None)]

    def work(self):
        return [(self.rng.choice(split(WORKS)), None)]

    def law(self):
        return [(self.rng.choice(split(LAWS)), None)]

    def month(self):
        return [(self.pick(MONTHS), "DATE_TIME")]
