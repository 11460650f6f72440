// Valid and near-miss values of every type with a check, in sentences of
// several languages. testdata/values.txt holds the values; independent
// programs judged them.

package pii

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var show = flag.Bool("show", false, "print the values that are missed or wrongly found")

// carriers are sentences for a value of a type; %s is the value. Those of a
// type that needs a word before it have one.
var carriers = map[Type][]string{
	CreditCard: {
		"Please charge %s for the order.", "My card number is %s, exp 04/29.", "Bitte buchen Sie von %s ab.", "Kartennummer: %s",
		"Ma carte %s a été volée hier.", "Mi tarjeta es %s y caduca pronto.", "O meu cartão é %s.", "La mia carta è %s, grazie.",
		"我的信用卡号是%s，请取消订单。", "カード番号は%sです。", "{\"pan\": \"%s\"}", "2024-05-01 pay=%s status=declined", "номер карты %s, спасибо", "cc %s cvv 123",
	},
	IBAN: {
		"Send it to %s please.", "IBAN: %s", "Überweisen Sie auf %s bis Freitag.", "Mon IBAN est %s.", "Transfiere a %s, gracias.", "Bonifico su %s entro lunedì.",
		"A conta é %s.", "请转账到%s。", "iban=%s;bic=DEUTDEFF", "Rekening %s, t.n.v. de vereniging", "(%s)",
	},
	USSSN: {
		"Her SSN is %s.", "SSN: %s", "%s", "ssn=%s", "The applicant (%s) was approved.", "Seine Sozialversicherungsnummer in den USA lautet %s.", "他的社会安全号码是%s。", "Mi número de seguro social es %s.",
	},
	CNResidentID: {
		"我的身份证号是%s。", "身份证：%s", "姓名李四，%s，住北京", "The ID card number is %s.", "id=%s", "身份证号码 %s 已登记",
	},
	Aadhaar: {
		"My Aadhaar number is %s.", "Aadhaar: %s", "मेरा आधार नंबर %s है", "aadhaar_no=%s", "Please link Aadhaar %s with the account.",
	},
	NHS: {
		"The patient's NHS number is %s.", "NHS no: %s", "NHS %s, seen in clinic", "nhs_number=%s",
	},
	NINO: {
		"My NI number is %s.", "National Insurance: %s", "NINO %s on file", "Payroll has %s for her.",
	},
	VAT: {
		"VAT: %s", "USt-IdNr. %s", "Notre numéro de TVA est %s.", "NIF-IVA %s", "P.IVA %s", "BTW-nummer %s graag vermelden", "Invoice to Acme, %s, net 30",
	},
	BankNumber: {
		"%s", "Use %s for the deposit.", "My bank's %s, thanks.", "wire: %s",
	},
	PhoneNumber: {
		"Call me at %s tomorrow.", "Phone: %s", "Ruf mich unter %s an.", "Téléphone : %s", "Mi teléfono es %s.", "O meu telefone é %s.", "Il mio telefono è %s.",
		"我的电话是%s。", "電話番号は%sです。", "전화번호는 %s 입니다.", "Мой телефон %s.", "tel=%s", "Telefoon %s bellen", "{\"phone\": \"%s\"}", "WhatsApp %s!",
	},
}

func TestCarriers(t *testing.T) {
	data, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[Type]*tally{}
	var all tally
	number := 0
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			continue
		}
		typ := typeNamed(f[0])
		if typ == 0 {
			t.Fatalf("cannot find type %q", f[0])
		}
		if counts[typ] == nil {
			counts[typ] = new(tally)
		}
		// Three of the type's sentences, others for the next value.
		for k := range 3 {
			forms := carriers[typ]
			c := inCarrier(t, forms[(number+k*5)%len(forms)], typ, f[1] == "good", f[2])
			counts[typ].add(c)
			all.add(c)
		}
		number++
	}
	for typ, c := range counts {
		t.Logf("%-18s %+v F1 %.1f", typ, *c, c.f1())
		if c.f1() < 98 {
			t.Errorf("%s: F1 %.1f, want 98 at least", typ, c.f1())
		}
	}
	t.Logf("all: F1 %.2f", all.f1())
	if all.f1() < 99 {
		t.Errorf("all types: F1 %.1f, want 99 at least", all.f1())
	}
}

// inCarrier puts a value into a sentence and counts: a find of any type in
// the place of a near-miss is wrong.
func inCarrier(t *testing.T, form string, typ Type, good bool, v string) (c tally) {
	before, after, _ := strings.Cut(form, "%s")
	text := before + v + after
	start, end := len(before), len(before)+len(v)
	if word, rest, found := strings.Cut(v, "routing "); found && word == "" {
		start = end - len(rest)
	}
	if good {
		c.marked = 1
	}
	for _, s := range Find(nil, []byte(text)) {
		if int(s.End) <= start || int(s.Start) >= end {
			continue
		}
		c.found++
		if good && s.Type == typ && int(s.Start) == start && int(s.End) == end {
			c.hit = 1
		}
	}
	if *show && (c.hit != c.marked || c.found != c.hit) {
		t.Logf("%s %v: %q: %v", typ, good, text, described(text))
	}
	return c
}

// described returns the finds in text as "TYPE:value".
func described(text string) (finds []string) {
	for _, s := range Find(nil, []byte(text)) {
		finds = append(finds, s.Type.String()+":"+text[s.Start:s.End])
	}
	return finds
}
