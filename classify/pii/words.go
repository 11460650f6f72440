// The vocabulary: words that announce a value, by language, and words that
// stand between them. "a+b" is a phrase of two words.

package pii

// entry is a set of words with the same meaning.
type entry struct {
	label label
	use   uint16
	words string
}

var entries = []entry{
	{label: lPhone, words: `phone phones telephone tel tele telno phonenumber mobile mobil cell cellphone cellular
		fax telefax landline hotline helpline pager whatsapp sms desk call calls called calling ring reach
		dial dialing dialled callback voicemail registered message messages text+me my+number new+number meine+nummer mon+numéro mi+número meu+número mio+numero mijn+nummer msisdn ph phn
		telefon telefonnummer telefonnr handy handynummer mobilnummer mobiltelefon rufnummer durchwahl festnetz
		faxnummer rückruf erreichbar erreichen anrufen anruf ruf rufen
		téléphone portable appelez appeler appelle joindre joignable télécopie fixe gsm
		teléfono telefono teléfonos móvil movil celular llama llame llamar llámame llámeme llamada fijo
		telefone telemóvel telemovel ligue ligar liga contacto contato contact contacter
		cellulare chiama chiamare chiamami recapito chiami
		telefoon telefoonnummer mobiel bel bellen
		telefonnumret mobilnummer ring+mig ringa tlf mobilen
		komórka zadzwoń komórkowy puhelin puhelinnumero telefonszám mobilszám telefonní číslo+telefonu
		телефон телефона телефону тел мобильный мобильного сотовый звоните позвоните звонить факс номер+телефона
		τηλέφωνο κινητό τηλ cep telefonu numarası+telefon telefonum
		điện+thoại sđt हाथ फोन फ़ोन मोबाइल नंबर+मोबाइल হ্যালো ফোন মোবাইল
		هاتف الهاتف جوال الجوال موبايل تلفون טלפון נייד โทร โทรศัพท์ มือถือ nomor+telepon telepon hubungi`},
	{label: lCard, words: `card cards cc creditcard debit visa mastercard amex maestro discover cardnumber ccnum pan+number
		kreditkarte kreditkartennummer karte kartennummer kartennr ec+karte
		carte carte+bancaire cb tarjeta tarjetas cartão cartao carta+credito carta creditcardnummer kaart kort kortnummer karta kartę karty kartou
		карта карты картой карту kart kartı thẻ कार्ड কার্ড بطاقة البطاقة כרטיס บัตร kartu`},
	{label: lSSN, words: `ssn ssns socialsecurity social+security soc+sec sozialversicherungsnummer+us social+number`},
	{label: lLicence, words: `driver+license drivers+license driver+licence drivers+licence driving+licence driving+license
		driver+licenses license+id driver+lic driverslicense driverlicense dl+number dl+no dln license+number licence+number licence+id
		führerschein führerscheinnummer fuehrerschein fahrerlaubnis permis+conduire conducir carnet+conducir licencia+conducir
		permiso+conducir carteira+motorista carteira+habilitação cnh carta+condução patente patente+guida guida rijbewijs rijbewijsnummer
		körkort kørekort førerkort jazdy prawo+jazdy водительское водительского ehliyet`},
	{label: lLicence, use: wCapital, words: `dl dln`},
	{label: lPassport, words: `passport passports passportnumber passportno reisepass reisepassnummer pass+nr passnummer passeport pasaporte
		passaporto passaporte paspoort paspoortnummer paszport paszportu pas+number pass+nummer pasnummer passnumret passi útlevél
		паспорт паспорта паспорту διαβατήριο pasaport hộ+chiếu पासपोर्ट পাসপোর্ট جواز دרכון paspor หนังสือเดินทาง`},
	{label: lBank, words: `bank+account account+number account+no account+num acct acctno accountnumber account+nr account+ending
		account+id bankaccount checking+account savings+account deposit+account account a/c accnum acc+no acc+number acc+num beneficiary+account
		konto kontonummer kontonr bankkonto compte+bancaire numéro+compte compte cuenta cuenta+bancaria conta conta+corrente conta+bancária
		conto conto+corrente rekening rekeningnummer bankrekening konta rachunek rachunku счет счёт счета счёта hesap hesabı खाता rekening+number
		حساب الحساب`},
	{label: lRouting, words: `routing aba rtn routing+number routingnumber routing+transit`},
	{label: lMRN, words: `mrn medical+record medical+records patient+id patient+number patient+no patient+mrn patientid hospital+number chart+number
		chart+no medicalrecord medical+file health+record patient+record mrn+no
		patientennummer patienten+id fallnummer krankenaktennummer aktenzeichen+patient patientnummer dossier+médical numéro+patient
		numéro+dossier dossier+patient ipp historia+clínica número+paciente historia+clinica expediente+médico
		prontuário prontuario número+prontuário cartella+clinica codice+paziente patiëntnummer`},
	{label: lZip, words: `zip zipcode zip+code postal postal+code postalcode postcode post+code pin+code pincode plz postleitzahl code+postal
		código+postal codigo+postal cep cap+code cap codice+postale postnummer postnr kod+pocztowy kod+posta индекс индекса irányítószám psč postinumero posta+kodu
		postcode+nummer पिन+कोड`},
	{label: lAge, words: `age aged ages turned turn turns turning i'm+now alter âge âgé âgée agé edad idade età eta leeftijd wiek ålder alder ikä возраст возрасте yaş yaşı tuổi उम्र
		العمر عمر גיל อายุ usia umur lebensalter`},
	{label: lAge, use: wWeak, words: `he+was she+was i+was they+were he+is she+is i+am i+m he+s she+s you+are`},
	{label: lAadhaar, words: `aadhaar aadhar adhaar uidai uid आधार আধার ஆதார் ఆధార్ આધાર`},
	{label: lNHS, words: `nhs nhs+number nhsnumber nhs+no`},
	{label: lNINO, words: `nino ni+number national+insurance nationalinsurance`},
	{label: lVAT, words: `vat vat+number vatid vat+id vat+reg vat+no ust ustid ustidnr ust+idnr ust+id mwst umsatzsteuer tva nif cif iva p+iva piva partita+iva partita
		btw btw+nummer moms momsnr momsnummer nip nip+ue dič ičo áfa alv cvr ддс φπα afm`},
	{label: lKey, words: `api+key api+keys apikey apikeys api+token api+secret secret+key secretkey access+token access+key accesskey accesstoken auth+token authtoken
		client+secret clientsecret bearer token tokens secret secrets private+key privatekey signing+key signing+secret encryption+key
		refresh+token session+token webhook+secret license+key api+schlüssel schlüssel+api geheimnis jeton clé+api clave+api chave+api chiave+api clé+secrète clave+secreta
		chave+secreta ключ+api токен ключ अनाम`},
	{label: lPassword, words: `password passwords passwd passphrase pwd pass+word passcode userpassword loginpassword adminpassword dbpassword pw kennwort passwort passwörter
		mot+passe passe contraseña contrasena contraseñas clave senha senhas palavra+passe password+è parola+ordine wachtwoord lösenord adgangskode passord salasana
		hasło hasła heslo jelszó пароль пароля паролем пароли κωδικός şifre şifresi şifrem şifremiz parola parolam parolası mật+khẩu पासवर्ड পাসওয়ার্ড كلمة+المرور كلمة+السر סיסמה סיסמא รหัสผ่าน sandi kata+sandi`},
	{label: lResident, words: `resident+id chinese+id id+card identity+card`},
	{label: lIBAN, words: `iban ibans`},
	{label: lDate, words: `born birthday birthdate dob date birth geboren geburtsdatum geburtstag datum né née naissance nacido nacida nacimiento fecha
		nascido nascida nascimento nato nata nascita data geboren+op geboortedatum född født urodzony urodzenia родился родилась рождения дата`},
	{label: lAddress, words: `address addresses adresse anschrift dirección direccion endereço endereco indirizzo adres adress lives+at wohnt+in адрес`},
	{label: lOther, words: `order orders invoice ticket tracking isbn issn serial version build part sku ean upc gtin imei vin flight case policy employee member membership
		reference ref confirmation booking reservation claim tax tin ein itin pan voter model article item product lot batch port pid uid+gid rfc
		employer customer student folio docket patent po bestellung bestellnummer rechnung rechnungsnummer auftragsnummer sendungsnummer seriennummer artikelnummer commande facture
		pedido factura fatura ordine fattura zamówienie faktura bestelling factuur order+number заказ заказа номер+заказа счет-фактура tracking+number
		timestamp epoch hash checksum commit revision error code+error status total sum amount population price revenue salary budget votes`},

	{use: wFiller, words: `only just now almost already about nearly number numbers numbered no nr num nummer numero numéro número numer nº id ids ident code key value the my your his her our their a an this that new old current temporary temp default following
		for of to at on under with as by me us him them here have please registered ending found associated valid login user account accounts and from admin root
		meine mein ihre ihr die der das den unter für mit neue neues von mon ma mes votre vos le la les sous est+le avec mi su el los con tu nuevo nueva meu minha sua seu o novo nova mio mia tuo
		suo il nuovo di de del da do mijn uw het een min mitt mit ditt moje mój twoje jest+to номер мой моя твой ваш это`},
	{use: wIs, words: `is are was were be being been set equals becomes has had using used lautet ist sind war wurde est était sont es era son fue é era foi è era sono was+set är er jest to+jest هي هو это był olan is+now`},
	{use: wJoin, words: `s of de del della di da do du la le of+the des en`},
	{use: wWeekday, words: `monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag
		lundi mardi mercredi jeudi vendredi samedi dimanche понедельник вторник среду четверг пятницу субботу воскресенье maandag dinsdag woensdag donderdag vrijdag zaterdag zondag lunes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì`},
	{use: wYear, words: `in by during since until till of a an year circa early late from before after between through spring summer autumn fall winter im seit bis jahr
		ab en depuis jusqu année desde hasta año em até ano dal nel nell anno sinds tot jaar sedan år wurde năm od do roku году в с года born geboren né née nato nata nacido nascido`},
	{use: wUnit, words: `degrees grad grados degrés usd eur gbp euro euros dollars dollar pounds yen rupees rs percent pct kg km cm mm miles meters metres feet ft inches people users tokens words bytes kb mb gb tb
		ms seconds secs minutes mins hours hrs days weeks months years items units pieces points votes copies pages times rows lines cases patients customers employees students
		millionen million billion thousand millions personen menschen leute stück tage jahre personas días años personnes jours ans pessoas dias anos persone giorni anni`},
	{use: wOld, words: `old yo aged+y`},
}

// monthNames lists the months by language, in order; "/" separates the forms of one name.
var monthNames = []string{
	"january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sep/sept october/oct november/nov december/dec",
	"januar/jänner/januari/janvier/enero/janeiro/gennaio/ene/janv februar/feber/februari/février/fevrier/febrero/fevereiro/febbraio/févr/fev märz/maerz/maart/mars/marzo/março/marco/mär abril/avril/aprile/avr/abr mai/mei/mayo/maio/maggio/maj juni/juin/junio/junho/giugno juli/juillet/julio/julho/luglio/juil augusti/août/aout/agosto/ago septembre/septiembre/setembro/settembre/sept/set oktober/octobre/octubre/outubro/ottobre/okt/out novembre/noviembre/novembro dezember/décembre/decembre/diciembre/dezembro/dicembre/dez/déc/dic",
	"stycznia/ledna/января/янв lutego/února/февраля/фев marca/března/марта/мар kwietnia/dubna/апреля/апр maja/května/мая czerwca/června/июня/июн lipca/července/июля/июл sierpnia/srpna/августа/авг września/září/сентября/сен października/října/октября/окт listopada/listopadu/ноября/ноя grudnia/prosince/декабря/дек",
	"ocak şubat mart/márta nisan mayıs/maja haziran/kesäkuuta temmuz/heinäkuuta ağustos/elokuuta eylül/syyskuuta ekim/lokakuuta kasım/marraskuuta aralık/desember/december",
}

// glyphEntries are the words of scripts without spaces.
var glyphEntries = []entry{
	{label: lPhone, words: `我的号码 电话 電話 手机 手機 致电 联系 聯絡 拨打 撥打 座机 传真 傳真 号码是 打给 联系我 热线 携帯 携帯番号 連絡先 전화 전화번호 휴대폰 연락처 핸드폰 휴대전화 팩스`},
	{label: lCard, words: `信用卡 银行卡 銀行卡 借记卡 卡号 卡號 储蓄卡 カード 카드`},
	{label: lLicence, words: `驾驶证 驾照 駕照 運転免許 免許証 운전면허 驾驶证号`},
	{label: lPassport, words: `护照 護照 パスポート 旅券 여권`},
	{label: lBank, words: `账号 帐号 账户 帐户 帳號 口座 口座番号 계좌 계좌번호 银行账号`},
	{label: lMRN, words: `病历号 病案号 住院号 就诊号 病歷號 患者番号 診察券番号 환자번호 患者编号 门诊号`},
	{label: lZip, words: `邮编 邮政编码 郵遞區號 郵便番号 우편번호 〒 郵編`},
	{label: lAge, words: `年龄 年齡 年纪 年齢 나이`},
	{label: lAge, use: wWeak, words: `今年 现年 年满`},
	{label: lKey, words: `密钥 密鑰 令牌 秘钥 访问密钥 シークレット トークン 토큰 API密钥`},
	{label: lPassword, words: `密码 密碼 口令 パスワード 暗証番号 비밀번호 암호`},
	{label: lResident, words: `身份证 身分證 身份证号 身份证号码 证件号 居民身份证`},
	{label: lDate, words: `出生 生日 日期 生年月日 생년월일 生于`},
	{label: lAddress, words: `地址 住址 住所 주소`},
	{label: lVAT, words: `增值税 税号`},
	{label: lOther, words: `订单 订单号 訂單 单号 快递 编号 工号 学号 発注 注文 注文番号 주문 版本 发票 票号 航班 车次`},
	{use: wFiller, words: `号码 号碼 號碼 号 號 番号 번호 我的 你的 他的 她的 您的 の`},
	{use: wIs, words: `是 为 為 は 는 은 改成 设为 设置为 설정`},
	{use: wWeekday, words: `星期一 星期二 星期三 星期四 星期五 星期六 星期日 星期天 礼拜一 礼拜五 周一 周二 周三 周四 周五 周六 周日 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日 월요일 화요일 수요일 목요일 금요일 토요일 일요일`},
	{use: wOld, words: `岁 歲 歳 才 세 살 周岁`},
}
