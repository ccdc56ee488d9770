"""A zoo of models as people have them: modules, exports, quantised and optimised files."""
