// The table of types: for each its name, the function that finds it, the words that must stand
// before it, and the score of a find.

package pii

// Type is a kind of personal data. The zero Type is none.
type Type uint8

// The types. Those from Person to Title have no rules here: a tagger finds names. Chinese mobile
// numbers are PhoneNumber, so that allowing PHONE_NUMBER allows them.
const (
	_ Type = iota
	APIKey
	Password
	Crypto
	IBAN
	EmailAddress
	DomainName
	IPAddress
	MACAddress
	DateTime
	CNResidentID
	CreditCard
	USSSN
	Aadhaar
	NHS
	NINO
	VAT
	DriverLicense
	Passport
	MRN
	BankNumber
	PhoneNumber
	ZipCode
	Age
	StreetAddress
	Person
	GPE
	Organization
	NRP
	Title
	types // how many, with none
)

// row has the rules for one Type.
//
// Scanners are called in the order of the table, which is the order of strength: the first match
// wins. digits is called at a run of digits, code at a token that mixes letters and digits. The
// other types begin with other bytes ('@', "://", a word), and scan.go calls their functions by
// name.
type row struct {
	name  string
	label label // the words that announce this type
	needs bool  // found only after such a word
	// score is the share of correct finds, measured on the training rows and on ordinary prose
	// and code; near is the same with a word of label before the value. 0: no such finds.
	score, near float32
	digits      func(*scan, *digits) match
	code        func(*scan, *code) match
}

// match is a scanner's result: text[start:end] is a value of the type with this score (0: the
// row's score). bad means a value with a wrong check digit: nothing is found there, and looser
// scanners are not called. The zero match means that there is no value of the type.
type match struct {
	start, end int
	score      float32
	bad        bool
}

var table = [types]row{
	APIKey:        {name: "API_KEY", label: lKey, score: 0.99, near: 0.85},
	Password:      {name: "PASSWORD", label: lPassword, needs: true, near: 0.85},
	Crypto:        {name: "CRYPTO", score: 0.99, code: crypto},
	IBAN:          {name: "IBAN_CODE", label: lIBAN, score: 0.99, code: iban},
	EmailAddress:  {name: "EMAIL_ADDRESS", score: 0.99},
	DomainName:    {name: "DOMAIN_NAME", score: 0.9},
	IPAddress:     {name: "IP_ADDRESS", score: 0.95, digits: ipv4},
	MACAddress:    {name: "MAC_ADDRESS", score: 0.95},
	DateTime:      {name: "DATE_TIME", label: lDate, score: 0.9, digits: date},
	CNResidentID:  {name: "CN_RESIDENT_ID", label: lResident, score: 0.99, digits: resident},
	CreditCard:    {name: "CREDIT_CARD", label: lCard, score: 0.95, near: 0.99, digits: card},
	USSSN:         {name: "US_SSN", label: lSSN, score: 0.85, near: 0.99, digits: ssn},
	Aadhaar:       {name: "IN_AADHAAR", label: lAadhaar, score: 0.75, near: 0.99, digits: aadhaar},
	NHS:           {name: "UK_NHS", label: lNHS, needs: true, near: 0.99, digits: nhs},
	NINO:          {name: "UK_NINO", label: lNINO, score: 0.9, near: 0.99, code: nino},
	VAT:           {name: "EU_VAT", label: lVAT, score: 0.8, near: 0.99, digits: vatDigits, code: vatCode},
	DriverLicense: {name: "US_DRIVER_LICENSE", label: lLicence, needs: true, near: 0.85, digits: licenceDigits, code: licenceCode},
	Passport:      {name: "US_PASSPORT", label: lPassport, needs: true, near: 0.9, digits: passportDigits, code: passportCode},
	MRN:           {name: "MRN", label: lMRN, needs: true, near: 0.85, digits: recordDigits, code: recordCode},
	BankNumber:    {name: "US_BANK_NUMBER", label: lBank, needs: true, near: 0.85, digits: accountDigits, code: accountCode},
	PhoneNumber:   {name: "PHONE_NUMBER", label: lPhone, score: 0.8, near: 0.95, digits: phone},
	ZipCode:       {name: "ZIP_CODE", label: lZip, score: 0.72, near: 0.9, digits: zipDigits, code: zipCode},
	Age:           {name: "AGE", label: lAge, needs: true, near: 0.85, digits: age},
	StreetAddress: {name: "STREET_ADDRESS", label: lAddress, score: 0.75, near: 0.8, digits: streetDigits},
	Person:        {name: "PERSON"},
	GPE:           {name: "GPE"},
	Organization:  {name: "ORGANIZATION"},
	NRP:           {name: "NRP"},
	Title:         {name: "TITLE"},
}

// String returns the name as in Presidio, such as EMAIL_ADDRESS; types that Presidio lacks have
// names in the same style.
func (t Type) String() string {
	if t == 0 || t >= types {
		return "NONE"
	}
	return table[t].name
}

// Checked reports whether a check digit or an issuer's prefix distinguishes values of the type
// from other numbers and words.
func (t Type) Checked() bool {
	switch t {
	case APIKey, Crypto, IBAN, CNResidentID, CreditCard, USSSN, Aadhaar, NHS:
		return true
	}
	return false
}

// Announced reports whether a word before the value announces its type.
func (s Span) Announced() bool { return s.Score == table[s.Type].near }

// Types returns how many types there are: they are 1 to Types.
func Types() Type { return types - 1 }

// The rows called at digits, and at codes, in order.
var (
	askDigits = asked(func(r *row) bool { return r.digits != nil })
	askCode   = asked(func(r *row) bool { return r.code != nil })
)

func asked(has func(*row) bool) (order []Type) {
	for t := range table {
		if has(&table[t]) {
			order = append(order, Type(t))
		}
	}
	return order
}
