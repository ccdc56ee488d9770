# What findings are made of and the questions they answer; lazy.py reads this list.

# an answer
from pindown.findings.finding import Finding as Finding
from pindown.findings.finding import Quantity as Quantity
from pindown.findings.finding import Table as Table
from pindown.evidence import Assumption as Assumption
from pindown.evidence import KINDS as KINDS

# what to do about them
from pindown.findings.concerns import RULES as RULES
from pindown.findings.concerns import Concern as Concern
from pindown.findings.concerns import Rule as Rule

# the questions
from pindown.findings.catalogue import CATALOGUE as CATALOGUE
from pindown.findings.questions import GROUPS as GROUPS
from pindown.findings.questions import Question as Question
from pindown.findings.questions import question as question
