# Results draw themselves (to_html, to_json, ...): this is what is left; lazy.py reads this list.

from pindown.report.audit_json import json_schema as json_schema
