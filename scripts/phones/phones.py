#!/usr/bin/env python3
"""Makes classify/pii/testdata/phones.tsv: example numbers of every region, as libphonenumber writes them.

usage: phones.py > classify/pii/testdata/phones.tsv     (needs requirements.txt beside it)

A line is a region, the type of the example, the number in international form, and in national form;
codes of no country have the region 001. The last line has all country codes.
"""
import phonenumbers as p

TYPES = {"fixed": p.PhoneNumberType.FIXED_LINE, "mobile": p.PhoneNumberType.MOBILE}


def main():
    print(f"# Example numbers of libphonenumber (Python package phonenumbers {p.__version__}, Apache-2.0), by scripts/phones/phones.py.")
    rows = []
    for region in sorted(p.SUPPORTED_REGIONS):
        for name, kind in TYPES.items():
            number = p.example_number_for_type(region, kind)
            if number:
                rows.append((region, name, number))
    for code in sorted(p.COUNTRY_CODES_FOR_NON_GEO_REGIONS):
        number = p.example_number_for_non_geo_entity(code)
        rows.append(("001", "world", number))
    for region, name, number in rows:
        forms = [p.format_number(number, form) for form in (p.PhoneNumberFormat.INTERNATIONAL, p.PhoneNumberFormat.NATIONAL)]
        print("\t".join((region, name, *forms)))
    print("# codes\t" + " ".join(map(str, sorted(p.COUNTRY_CODE_TO_REGION_CODE))))


main()
